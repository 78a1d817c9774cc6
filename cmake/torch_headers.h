// Owns: what every file that may include torch shares as one precompiled header. A file still includes what it uses.
#pragma once

#include <ATen/ATen.h>
#include <Python.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
