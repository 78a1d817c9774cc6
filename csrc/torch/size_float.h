// Owns: arithmetic of floats, now and in the graph, and floats that are made of sizes: kept as an expression until
// somebody asks for the number (which guards the sizes) or for a tensor of the graph. Must not: know SymNodes.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "ir/sym.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {

double compute(NumberFunction f, double x);
at::Tensor compute(NumberFunction f, const at::Tensor& x);
double compute(Arithmetic op, double a, double b);
at::Tensor compute(Arithmetic op, const at::Tensor& a, const at::Tensor& b);

// One of the sizes, a number, or arithmetic on two such floats.
struct SizeFloat {
  ir::Sym size = 0;
  double number = 0;  // with neither a size nor operands
  std::optional<Arithmetic> op = {};
  std::shared_ptr<const SizeFloat> left = {}, right = {};
};
using SizeFloatRef = std::shared_ptr<const SizeFloat>;

// As it is now; the sizes are guarded.
double value_now(const SizeFloat& of, ir::ShapeEnv& env);
// A double on the CPU without dimensions, recorded; undefined: nothing records on this thread.
at::Tensor graph_tensor(const SizeFloat& of, ir::ShapeEnv& env);

// A size, and what is added to it; doubles hold sizes exactly.
struct ShiftedSize {
  ir::Sym size = 0;
  double by = 0;
};
std::optional<ShiftedSize> shifted_size(const SizeFloat& of);

}  // namespace graphlift::torch_layer
