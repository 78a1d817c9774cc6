// Owns: floats that the graph computes as functions of what one input holds when the region is entered, so that
// decisions on them can be guarded. Must not: record anything.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "guards/guard.h"
#include "ir/graph.h"

namespace at {
class Tensor;
}

namespace graphlift::torch_layer {

struct OfInput {
  int primal = -1;  // -1: a constant
  std::function<double(double)> value;
};

OfInput constant_number(double value);
// Nothing: they are of two inputs.
std::optional<OfInput> combined(const std::optional<OfInput>& a, const std::optional<OfInput>& b,
                                std::function<double(double, double)> f);
// Where such arithmetic begins: inputs (-1: not one that can be guarded) and tensors that are built into the graph.
struct Beginnings {
  std::function<int(const ir::Node*)> primal_of;
  std::function<std::optional<double>(int64_t)> constant;
};
// What a float on the CPU without dimensions is. Nothing: not arithmetic on one input.
std::optional<OfInput> number_of_value(const ir::ValueRef& value, const Beginnings& from);

// What such a tensor holds; nothing for another one.
std::optional<double> held_number(const at::Tensor& tensor);
// Guards on such an input that `decide` says what it said.
std::unique_ptr<guards::LeafCheck> decision_check(std::function<bool(double)> decide, bool expected);

}  // namespace graphlift::torch_layer
