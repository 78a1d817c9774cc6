// Owns: a graph as Python code over torch.ops, for people: it runs when it is pasted.
// Must not: be read back (ir/print.cpp's text is).
#pragma once

#include <string>

#include "ir/graph.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {

// A function `forward` of the graph's symbols, inputs and constants, in this order; a line of the user's stands above
// the calls that it made. `line_text` may be empty.
std::string code_text(const ir::Graph& graph, const LineText& line_text);

}  // namespace graphlift::torch_layer
