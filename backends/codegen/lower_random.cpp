// Owns: lowering of random draws whose state is a value of the graph (backends/cuda/draws.h makes such calls), and of
// what is done with them later. Must not: know where the state comes from.
#include "backends/codegen/lower_rule.h"

namespace graphlift::codegen {
namespace {

// Uniform numbers in (0, 1] as float32, by the places of elements in memory: seed, offset and place within a recording
// are tensor arguments from `first` on, then threads and elements of one at once.
Expr uniform(LowerCall& call, size_t first, const ir::TensorType& like) {
  std::vector<Value> args;
  for (size_t i = first; i < first + 3; ++i) args.push_back(call.tensor(i).value());
  Expr place(&call.graph, call.graph.number(ir::Sym(0), ir::DType::int64));
  for (int dim = 0; dim < like.rank(); ++dim) {
    const Expr index(&call.graph, call.graph.iota(like.sizes, dim));
    place = place + index * index.number(like.strides[static_cast<size_t>(dim)]);
  }
  args.push_back(place.value());
  for (size_t i = first + 3; i < first + 5; ++i) args.push_back(call.graph.number(call.sym(i), ir::DType::int64));
  return {&call.graph, call.graph.map(Prim::Uniform, std::move(args))};
}

// x, the probability to keep, the draw: the result and which elements it has.
bool dropout(LowerCall& call) {
  const Expr x = call.tensor(0).cast(*compute_type(call.out().dtype));
  const double keep = call.real(1);
  const ir::DType type = x.type();
  const Expr kept = uniform(call, 2, call.type(0)).cast(type) < keep;
  const double rounded = type == ir::DType::float32 ? static_cast<double>(static_cast<float>(keep)) : keep;
  call.give(x * kept.cast(type) * (1.0 / rounded));
  return call.give(kept);
}

bool dropout_backward(LowerCall& call) {
  const Expr gradient = call.tensor(0).cast(*compute_type(call.out().dtype));
  return call.give(gradient * call.tensor(1).cast(gradient.type()) * call.real(2));
}

constexpr LowerRow kLowerRandom[] = {
    {"graphlift::dropout.default", dropout},
    GL_LOWER("native_dropout_backward", "default", dropout_backward),
};

}  // namespace

std::span<const LowerRow> lower_random_rows() { return kLowerRandom; }

}  // namespace graphlift::codegen
