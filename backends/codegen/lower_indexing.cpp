// Owns: lowering of operators that read at places that tensors hold. Places that are known to be a range are views.
#include "backends/codegen/lower_rule.h"

namespace graphlift::codegen {
namespace {

using ir::DType;
using ir::Sym;
using Kind = TensorNode::Kind;
using Words = PlaceCheck::Words;

// The dim of a reshape that dim `dim` of its operand is, where only dims of size 1 came or went; else -1.
int reshaped_dim(const TensorNode& reshape, int dim) {
  const ir::Dims &from = reshape.args[0]->sizes, &to = reshape.sizes;
  int found = -1;
  size_t j = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].same(1)) continue;
    while (j < to.size() && to[j].same(1)) ++j;
    if (j == to.size() || !to[j].same(from[i])) return -1;
    if (static_cast<int>(i) == dim) found = static_cast<int>(j);
    ++j;
  }
  return found;
}

// start + step * (index along dim `from`), where that is what a value of whole numbers is.
std::optional<ViewDim> as_range(const Value value) {
  if (value->kind == Kind::Number && !ir::is_floating(value->dtype)) return ViewDim{-1, value->integer, 0};
  if (value->kind == Kind::Iota) return ViewDim{value->dim};
  if (value->kind == Kind::View) {
    auto range = as_range(value->args[0]);
    if (!range || range->from < 0) return range;
    const ViewDim& dim = value->view[static_cast<size_t>(range->from)];
    return ViewDim{dim.from, range->start + range->step * dim.start, range->step * dim.step};
  }
  if (value->kind == Kind::Reshape) {
    auto range = as_range(value->args[0]);
    if (!range || range->from < 0) return range;
    range->from = reshaped_dim(*value, range->from);
    return range->from < 0 ? std::nullopt : range;
  }
  if (value->kind != Kind::Map || computed_as(*value) != DType::int64) return std::nullopt;
  if (value->prim == Prim::Copy || value->prim == Prim::Cast) {
    return computed_as(*value->args[0]) == DType::int64 ? as_range(value->args[0]) : std::nullopt;
  }
  if (value->prim != Prim::Add && value->prim != Prim::Mul) return std::nullopt;
  auto a = as_range(value->args[0]), b = as_range(value->args[1]);
  if (!a || !b || (a->from >= 0 && b->from >= 0)) return std::nullopt;
  if (a->from < 0) std::swap(a, b);
  if (b->from >= 0 || value->args[0]->rank() * value->args[1]->rank() != 0) return std::nullopt;
  if (value->prim == Prim::Add) return ViewDim{a->from, a->start + b->start, a->step};
  return ViewDim{a->from, a->start * b->start, a->step * b->start};
}

// The same where all of it lies below `size`.
std::optional<ViewDim> range_within(const Value value, const Sym& size) {
  const auto range = as_range(value);
  if (!range || !range->start.is_constant() || !range->step.is_constant() || !size.is_constant()) return std::nullopt;
  int64_t last = range->start.constant();
  if (range->from >= 0) {
    const Sym& count = value->sizes[static_cast<size_t>(range->from)];
    if (!count.is_constant()) return std::nullopt;
    last += range->step.constant() * (std::max<int64_t>(count.constant(), 1) - 1);
  }
  if (std::min(range->start.constant(), last) < 0 || std::max(range->start.constant(), last) >= size.constant())
    return std::nullopt;
  return range;
}

// One element of `source` per element of the result.
class Gatherer {
 public:
  Gatherer(LowerCall& call, size_t source, Words words)
      : call_(call),
        source_(call.tensor(source)),
        words_(words),
        picks_(source_.sizes().size(), -1),
        dims_(source_.sizes().size()) {}

  // Dim `dim` of the source is read at dim `from` of the result.
  void follow(int dim, int from) { dims_[static_cast<size_t>(dim)] = {from}; }

  // At the places of argument `index`, whose dims are those of the result that end `behind` before its last one.
  void pick(int dim, const ir::ValueRef& index, int behind) {
    const Sym& size = source_.sizes()[static_cast<size_t>(dim)];
    Expr places(&call_.graph, call_.read(index));
    const int order = seen_++;
    places = places.cast(DType::int64);
    const auto at = static_cast<size_t>(dim);
    if (const auto range = range_within(places.value(), size)) {
      dims_[at] = *range;
      const bool one = range->from < 0 || places.sizes()[static_cast<size_t>(range->from)].same(1);
      dims_[at].from = one ? -1 : call_.out().rank() - behind - places.rank() + range->from;
      return;
    }
    const bool wraps = words_ == Words::Index;
    if (wraps) places = select(places < 0.0, places + places.number(size), places);
    if (places.rank() > 0)
      for (int i = 0; i < behind; ++i) places = {&call_.graph, call_.graph.add_dim(places.value(), places.rank())};
    picks_[at] = static_cast<int>(indices_.size());
    indices_.push_back(places.value());
    checks_.push_back({index, size, words_ == Words::Index ? order : dim, words_, wraps, std::nullopt});
  }

  bool give() {
    if (indices_.empty())
      return call_.give({&call_.graph, call_.graph.view(source_.value(), call_.out().sizes, dims_)});
    const Value made = call_.graph.gather(indices_, source_.value(), call_.out().sizes, picks_, dims_);
    made->checks = checks_;
    return call_.give({&call_.graph, made});
  }

 private:
  LowerCall& call_;
  const Expr source_;
  const Words words_;
  int seen_ = 0;
  std::vector<Value> indices_;
  std::vector<int> picks_;
  std::vector<ViewDim> dims_;
  std::vector<PlaceCheck> checks_;
};

// weight, indices, ...
bool embedding(LowerCall& call) {
  if (!call.gathers) return false;
  Gatherer gatherer(call, 0, Words::Select);
  gatherer.follow(1, call.out().rank() - 1);
  gatherer.pick(0, *call.node.args[1].value(), 1);
  return gatherer.give();
}

// self, dim, index.
bool index_select(LowerCall& call) {
  const int rank = call.type(0).rank();
  if (!call.gathers || rank == 0) return false;
  const int dim = call.dim(1, rank);
  Gatherer gatherer(call, 0, Words::Select);
  for (int i = 0; i < rank; ++i)
    if (i != dim) gatherer.follow(i, i);
  gatherer.pick(dim, *call.node.args[2].value(), rank - 1 - dim);
  return gatherer.give();
}

// self, dim, index, sparse_grad.
bool gather(LowerCall& call) {
  const int rank = call.type(0).rank();
  if (!call.gathers || rank == 0 || call.type(2).rank() != rank) return false;
  const int dim = call.dim(1, rank);
  Gatherer gatherer(call, 0, Words::Gather);
  for (int i = 0; i < rank; ++i)
    if (i != dim) gatherer.follow(i, i);
  gatherer.pick(dim, *call.node.args[2].value(), 0);
  return gatherer.give();
}

// self, indices: a tensor or None per dim. Chosen dims become those of the indices together; they stand where the first
// chosen one stood, or in front when a whole dim lies between.
bool index(LowerCall& call) {
  const ir::ArgList* list = call.node.args[1].list();
  const int rank = call.type(0).rank(), result_rank = call.out().rank();
  if (!call.gathers || !list) return false;
  int first = -1, last = -1, chosen = 0;
  for (size_t i = 0; i < list->size(); ++i) {
    const ir::ValueRef* tensor = (*list)[i].value();
    if (!tensor) continue;
    const DType dtype = ir::type_of(*tensor).dtype;
    if (dtype != DType::int64 && dtype != DType::int32) return false;
    if (first < 0) first = static_cast<int>(i);
    last = static_cast<int>(i);
    ++chosen;
  }
  if (chosen == 0) return false;
  const int replaced = result_rank - (rank - chosen);
  const int before = last - first + 1 == chosen ? first : 0;
  Gatherer gatherer(call, 0, Words::Index);
  int whole = 0;
  for (int i = 0; i < rank; ++i) {
    const ir::ValueRef* tensor =
        static_cast<size_t>(i) < list->size() ? (*list)[static_cast<size_t>(i)].value() : nullptr;
    if (tensor)
      gatherer.pick(i, *tensor, result_rank - before - replaced);
    else
      gatherer.follow(i, whole < before ? whole : whole + replaced), ++whole;
  }
  return gatherer.give();
}

constexpr LowerRow kLowerIndexing[] = {
    GL_LOWER("embedding", "default", embedding), GL_LOWER("index_select", "default", index_select),
    GL_LOWER("gather", "default", gather),       GL_LOWER("index", "Tensor", index),
    GL_LOWER("_unsafe_index", "Tensor", index),
};

}  // namespace

std::span<const LowerRow> lower_indexing_rows() { return kLowerIndexing; }

}  // namespace graphlift::codegen
