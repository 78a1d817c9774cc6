// Owns: random draws of torch's CUDA kernels as parts of kernels: the same numbers, from torch's generator, which goes
// on as it would in eager. Must not: draw anything else.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>

#include "backends/reference/program.h"
#include "ir/graph.h"

namespace graphlift::cuda {

// How torch's kernels share draws on a GPU: `vectors`, per dtype, the elements that a thread of native_dropout takes at
// once where memory allows it; without one, the draw stays torch's.
struct DrawRules {
  int64_t most_threads = 0;
  std::map<ir::DType, int> vectors;
};

// Of the GPU that the graph draws on, for the dtypes that it draws for: found out by asking torch's kernel, once.
DrawRules draw_rules(const ir::Graph& graph);

// The number that torch's kernel draws for the element at a place of memory, in (0, 1].
float uniform_at(uint64_t seed, uint64_t offset, uint64_t place, uint64_t threads, uint64_t vector);

// The graph with draws as `graphlift::draw(increment)`, which takes seed, offset and place within a recording from the
// generator, and `graphlift::dropout(x, keep, seed, offset, within, threads, vector)`. Null: nothing is drawn that way.
std::unique_ptr<ir::Graph> with_draws(const ir::Graph& graph, const DrawRules& rules);

// Null: no such call. Its results are numbers of the CPU; `within` is -1 where nothing is recorded, else seed and
// offset are addresses in the GPU's memory.
std::unique_ptr<reference::NativeCall> make_draw_call(const ir::Node& node);

// For tests without a GPU, which draw on the CPU once a state is set: what they get, `recorded` by addresses. `vector`:
// of all dtypes.
void set_draw_state(uint64_t seed, uint64_t offset, bool recorded, int vector);
uint64_t draw_offset();
DrawRules test_draw_rules();

}  // namespace graphlift::cuda
