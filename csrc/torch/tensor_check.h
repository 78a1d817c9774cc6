// Owns: the guard on one tensor: everything about it that a recording relied on, compared without Python.
// Must not: know recorders or stand-ins.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "base/ref.h"
#include "guards/guard.h"
#include "ir/type.h"

namespace graphlift::torch_layer {

// What is guarded about a primal. Shared between the tracer, which may still find that an offset matters, and its
// checks.
struct PrimalFacts {
  Ref type;  // its Python class
  c10::DispatchKeySet keys;
  c10::Device device{c10::kCPU};
  bool leaf = true;
  bool offset_matters = false;  // views of it are made outside of the region, or by absolute offsets
  int64_t offset = 0;
  ir::TensorType tensor;  // symbolic sizes are bound from the tensor, strides made of them are compared
};

std::shared_ptr<PrimalFacts> make_facts(PyObject* object, const at::Tensor& real, const ir::TensorType& type);
std::unique_ptr<guards::LeafCheck> make_tensor_check(std::shared_ptr<const PrimalFacts> facts);

}  // namespace graphlift::torch_layer
