// Owns: conversion between arguments of the graph (ir::Arg) and of torch's dispatcher (c10::IValue), by the schema's
// types. Must not: know where values live; callers say so.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/util/FunctionRef.h>

#include <span>

#include "ir/graph.h"

namespace graphlift::torch_layer {

using ValueReader = c10::function_ref<c10::IValue(const ir::ValueRef&)>;

// An argument for a parameter of the given type. Symbolic ints are evaluated with `symbols`. None gives an undefined
// tensor where the schema wants a tensor, a number there a wrapped number (a tensor without dimensions that promotes as
// a number).
c10::IValue to_ivalue(const ir::Arg& arg, const c10::TypePtr& type, ValueReader value,
                      std::span<const int64_t> symbols);
// True when to_ivalue needs neither values nor symbols.
bool is_constant(const ir::Arg& arg);

using TensorWriter = c10::function_ref<ir::Arg(const at::Tensor&)>;
using SymWriter = c10::function_ref<ir::Sym(const c10::SymInt&)>;

// The way back. `type` is the parameter's real_type(), which tells dtypes, layouts and memory formats from ints.
// Undefined tensors become None. Throws InternalError on what a graph cannot hold (generators, streams, objects).
ir::Arg from_ivalue(const c10::IValue& value, const c10::Type& type, TensorWriter tensor, SymWriter sym);

// "aten::add.Tensor", "aten::mm.default" -> the operator's handle. Throws InternalError when torch has none.
c10::OperatorHandle find_operator(ir::Op op);
ir::Op op_of(const c10::OperatorHandle& handle);

c10::Device to_torch(ir::Device device);
ir::Device from_torch(c10::Device device);
inline c10::ScalarType to_torch(ir::DType dtype) { return static_cast<c10::ScalarType>(dtype); }
inline ir::DType from_torch(c10::ScalarType dtype) { return static_cast<ir::DType>(dtype); }

}  // namespace graphlift::torch_layer
