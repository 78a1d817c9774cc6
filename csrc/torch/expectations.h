// Owns: the operator that stops a graph where a tensor's truth is not what capture took it for.
// Must not: decide what is taken for granted (capture/expectations.h); include torch's headers.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace graphlift::torch_layer {

// "graphlift::expect(Tensor value, bool truth) -> ()": throws Unexpected where the truth of `value`, a tensor of one
// element, is another.
inline constexpr std::string_view kExpect = "graphlift::expect.default";
void register_expectations();  // once in a process

// Nothing that a graph did before it can be seen outside, but for generators that moved on.
struct Unexpected : std::runtime_error {
  Unexpected() : std::runtime_error("a branch that raises is taken") {}
};

bool has_expectations(const ir::Graph& graph);
// Not empty: what a graph does besides computing, in words, so that it can't be left in the middle.
std::string act_of(const ir::Graph& graph);

}  // namespace graphlift::torch_layer
