// Owns: lowering of losses and of their gradients.
#include <unordered_map>

#include "backends/codegen/lower_rule.h"
#include "ops/layout.h"

namespace graphlift::codegen {
namespace {

using ir::DType;

constexpr int64_t kNone = 0, kMean = 1;  // at::Reduction

Expr all_sum(const Expr& x) {
  const std::vector<bool> dims(x.sizes().size(), true);
  const Expr total = sum(x, dims);
  return {x.graph(), x.graph()->drop_dims(total.value(), dims)};
}

bool reduce_loss(LowerCall& call, const Expr& loss, int64_t reduction) {
  if (reduction == kNone) return call.give(loss);
  const Expr total = all_sum(loss);
  return call.give(reduction == kMean ? total / total.number(ops::product(loss.sizes())) : total);
}

// self, target, reduction.
bool mse_loss(LowerCall& call) {
  const Expr off = call.operand(0, call.out().dtype) - call.operand(1, call.out().dtype);
  return reduce_loss(call, off * off, call.integer(2));
}

// grad, self, target, reduction.
bool mse_loss_backward(LowerCall& call) {
  const Expr grad = call.operand(0, call.out().dtype);
  const Expr off = call.operand(1, call.out().dtype) - call.operand(2, call.out().dtype);
  const Expr scaled = off * 2.0;
  return call.give(call.integer(3) == kMean ? scaled / scaled.number(ops::product(off.sizes())) * grad : scaled * grad);
}

Expr difference(LowerCall& call, size_t self) {
  return call.operand(self, call.out().dtype) - call.operand(self + 1, call.out().dtype);
}

// The gradient's factor: grad_output, divided by the number of elements for a mean.
Expr scaled_gradient(LowerCall& call, const Expr& off, int64_t reduction) {
  const Expr grad = call.operand(0, call.out().dtype);
  return reduction == kMean ? grad / grad.number(ops::product(off.sizes())) : grad;
}

// self, target, reduction, beta: a parabola up to beta, a line beyond.
bool smooth_l1_loss(LowerCall& call) {
  const double beta = call.real(3);
  const Expr off = apply(Prim::Abs, difference(call, 0));
  return reduce_loss(call, beta == 0 ? off : select(off < beta, off * 0.5 * off / beta, off - 0.5 * beta),
                     call.integer(2));
}

// self, target, reduction, delta.
bool huber_loss(LowerCall& call) {
  if (call.type(0).dtype != call.out().dtype || call.type(1).dtype != call.out().dtype) return false;
  const double delta = call.real(3);
  const Expr off = apply(Prim::Abs, difference(call, 0));
  return reduce_loss(call, select(off <= delta, off * 0.5 * off, (off - 0.5 * delta) * delta), call.integer(2));
}

// grad_output, self, target, reduction, beta.
bool smooth_l1_loss_backward(LowerCall& call) {
  const double beta = call.real(4);
  const Expr off = difference(call, 1), grad = scaled_gradient(call, off, call.integer(3));
  const Expr inside = beta == 0 ? off * 0.0 : off * grad / beta;
  return call.give(select(off <= -beta, 0.0 - grad, select(off >= beta, grad, inside)));
}

// grad_output, self, target, reduction, delta.
bool huber_loss_backward(LowerCall& call) {
  const double delta = call.real(4);
  const Expr off = difference(call, 1), grad = scaled_gradient(call, off, call.integer(3));
  return call.give(select(off <= -delta, grad * -delta, select(off >= delta, grad * delta, off * grad)));
}

// Whether the class (the index along the last dim of [n, c], or along [c]) is the target's. An ignored target is
// none's. The loss, which came first, has checked that targets are in range.
Expr is_target(LowerCall& call, const Expr& target, const ir::Dims& sizes) {
  TensorGraph& graph = call.graph;
  const int rank = static_cast<int>(sizes.size());
  const Expr index(&graph, graph.iota(sizes, rank - 1));
  const Value column = target.rank() == rank ? target.value() : graph.add_dim(target.value(), rank - 1);
  return index == Expr(&graph, column);
}

// Of rows [n, c] the element at a place per row [n]. What is computed is computed again of picked elements, so that it
// need not be in memory: of a log softmax one element of a row is left.
class Picker {
 public:
  Picker(TensorGraph* graph, Value place, PlaceCheck check) : graph_(*graph), place_(place), check_(std::move(check)) {}

  // Of one class, too, something is picked: what is picked is checked.
  Value run(Value rows) {
    const bool again = rows->kind == TensorNode::Kind::Map && !rows->sizes[1].same(1);
    const Value picked = again ? pick(rows) : nullptr;
    return picked ? picked : gather(rows);
  }

 private:
  Value gather(Value rows) {
    const Value picked = graph_.gather({place_}, rows, place_->sizes, {-1, 0}, {{0}, {}});
    picked->checks.push_back(check_);
    return picked;
  }

  // Null: something in front of it is neither element-wise nor in memory.
  Value pick(Value rows) {
    if (rows->rank() == 0) return rows;
    if (rows->rank() != 2 || !rows->sizes[0].same(place_->sizes[0])) return nullptr;
    if (rows->sizes[1].same(1)) return graph_.drop_dims(rows, {false, true});
    const auto [known, fresh] = picked_.emplace(rows, nullptr);
    if (!fresh) return known->second;
    return picked_[rows] = memory_of(rows)->kind == TensorNode::Kind::Buffer ? gather(rows) : again(rows);
  }

  Value again(Value rows) {
    if (rows->kind != TensorNode::Kind::Map) return nullptr;
    std::vector<Value> args;
    for (const Value arg : rows->args) {
      args.push_back(pick(arg));
      if (!args.back()) return nullptr;
    }
    return rows->prim == Prim::Cast ? graph_.cast(args[0], rows->dtype) : graph_.map(rows->prim, std::move(args));
  }

  TensorGraph& graph_;
  const Value place_;
  const PlaceCheck check_;
  std::unordered_map<Value, Value> picked_;
};

// self, target, weight, reduction, ignore_index -> the loss, and the number of targets that are not ignored.
bool nll_loss_forward(LowerCall& call) {
  if (!call.gathers || !call.none(2) || call.type(0).rank() != 2 || call.type(1).dtype != DType::int64) return false;
  const int64_t reduction = call.integer(3);
  const ir::Sym classes = call.type(0).sizes[1], ignored = call.sym(4);
  if (reduction == kNone || classes.same(0) || !ignored.is_constant()) return false;
  const Expr self = call.tensor(0), target = call.tensor(1);
  const Expr counts = target != target.number(ignored);
  const Expr place = select(counts, target, target.number(0.0));
  Picker picker(&call.graph, place.value(),
                {*call.node.args[1].value(), classes, 0, PlaceCheck::Words::Target, false, ignored.constant()});
  const Expr loss(&call.graph, picker.run(self.value())), none = loss.number(0.0);
  const Expr total = all_sum(select(counts, none - loss, none)), weight = all_sum(counts.cast(loss.type()));
  call.give(reduction == kMean ? total / weight : total);
  return call.give(weight);
}

// grad_output, self, target, weight, reduction, ignore_index, total_weight.
bool nll_loss_backward(LowerCall& call) {
  const DType dtype = call.out().dtype;
  if (!call.none(3) || call.type(1).rank() != 2 || call.type(2).dtype != DType::int64) return false;
  const Expr target = call.tensor(2);
  Expr grad = call.operand(0, dtype);
  const int64_t reduction = call.integer(4);
  if (reduction == kNone) grad = {&call.graph, call.graph.add_dim(grad.value(), 1)};
  if (reduction == kMean) grad = grad / call.operand(6, dtype);
  const Expr hit = is_target(call, target, call.type(1).sizes);
  const Expr column(&call.graph, call.graph.add_dim(target.value(), 1));
  const Expr kept = apply(Prim::And, hit, column != column.number(call.sym(5)));
  return call.give(select(kept, 0.0 - grad, grad.number(0.0)));
}

constexpr LowerRow kLowerLosses[] = {
    GL_LOWER("mse_loss", "default", mse_loss),
    GL_LOWER("mse_loss_backward", "default", mse_loss_backward),
    GL_LOWER("smooth_l1_loss", "default", smooth_l1_loss),
    GL_LOWER("smooth_l1_loss_backward", "default", smooth_l1_loss_backward),
    GL_LOWER("huber_loss", "default", huber_loss),
    GL_LOWER("huber_loss_backward", "default", huber_loss_backward),
    GL_LOWER("nll_loss_forward", "default", nll_loss_forward),
    GL_LOWER("nll_loss_backward", "default", nll_loss_backward),
};

}  // namespace

std::span<const LowerRow> lower_losses_rows() { return kLowerLosses; }

}  // namespace graphlift::codegen
