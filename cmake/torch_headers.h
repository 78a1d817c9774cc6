// Owns: what every file that may include torch shares as one precompiled header. A file still includes what it uses.
// Must not: include pybind11, as torch's python_variable.h does: its code would be made again in each file, 3 s each.
#pragma once

#include <ATen/ATen.h>
#include <Python.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
