// Owns: lowering of layer, group and batch norms and of their gradients.
#include "backends/codegen/lower_rule.h"

namespace graphlift::codegen {
namespace {

using ir::DType;
using Flags = std::vector<bool>;

// Elements in a sum over the dims.
ir::Sym count(const Expr& x, const Flags& dims) {
  ir::Sym elements = 1;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i]) elements = elements * x.sizes()[i];
  return elements;
}

Expr optional_or(LowerCall& call, size_t i, DType dtype, const Expr& like, double otherwise) {
  return call.none(i) ? like.number(otherwise) : call.operand(i, dtype);
}

// A one-dim value along `dim` of a tensor of `rank` dims.
Expr along(const Expr& x, int dim, int rank) {
  Value value = x.value();
  if (value->rank() == 0) return x;
  for (int i = dim + 1; i < rank; ++i) value = x.graph()->add_dim(value, value->rank());
  return {x.graph(), value};
}

Expr flat(const Expr& x, const Flags& dims) { return {x.graph(), x.graph()->drop_dims(x.value(), dims)}; }

// The last `rank of normalized_shape` dims.
Flags normalized_dims(LowerCall& call, size_t shape, int rank) {
  Flags dims(static_cast<size_t>(rank), false);
  for (size_t i = dims.size() - call.syms(shape).size(); i < dims.size(); ++i) dims[i] = true;
  return dims;
}

Flags others(Flags dims) {
  dims.flip();
  return dims;
}

// input, normalized_shape, weight, bias, eps. Results: output, mean, rstd.
bool layer_norm(LowerCall& call) {
  const DType dtype = DType::float32;
  if (*compute_type(call.out().dtype) != dtype) return false;
  const Expr x = call.operand(0, dtype);
  const Flags dims = normalized_dims(call, 1, x.rank());
  const ir::Sym elements = count(x, dims);
  if (elements.same(0)) return false;
  // Of no elements the mean is 0, and the other one is NaN.
  const Expr n = x.number(elements), some = x.number(max(elements, 1));
  const Expr mean = sum(x, dims) / some, off = x - mean;
  const Expr rstd = 1.0 / apply(Prim::Sqrt, sum(off * off, dims) / n + call.real(4));
  Expr y = off * rstd;
  if (!call.none(2)) y = y * call.operand(2, dtype);
  if (!call.none(3)) y = y + call.operand(3, dtype);
  call.give(y);
  return call.give(mean) && call.give(rstd);
}

// grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask.
bool layer_norm_backward(LowerCall& call) {
  const DType dtype = DType::float32;
  if (*compute_type(call.type(1).dtype) != dtype) return false;
  const Expr grad = call.operand(0, dtype), x = call.operand(1, dtype);
  const Flags dims = normalized_dims(call, 2, x.rank());
  const ir::Sym elements = count(x, dims);
  if (elements.same(0)) return false;
  const Expr n = x.number(elements), rstd = call.operand(4, dtype);
  const Expr xhat = (x - call.operand(3, dtype)) * rstd;
  const Expr scaled = call.none(5) ? grad : grad * call.operand(5, dtype);
  const Expr a = sum(scaled, dims) / n, b = sum(scaled * xhat, dims) / n;
  call.wants(0) ? call.give((scaled - a - xhat * b) * rstd) : call.give_nothing();
  call.wants(1) ? call.give(flat(sum(grad * xhat, others(dims)), others(dims))) : call.give_nothing();
  return call.wants(2) ? call.give(flat(sum(grad, others(dims)), others(dims))) : call.give_nothing();
}

Flags all_but(int rank, int kept) {
  Flags dims(static_cast<size_t>(rank), true);
  dims[static_cast<size_t>(kept)] = false;
  return dims;
}

// weight * n / (n - 1).
Expr unbiased(const Expr& like, const ir::Sym& n, double weight) {
  if (!n.is_constant()) return like.number(n) * weight / like.number(n - 1);
  const auto elements = static_cast<double>(n.constant());
  return like.number(weight * elements / (elements - 1));
}

// input, weight, bias, running_mean, running_var, training, momentum, eps.
// Results: output, save_mean, save_invstd, new running mean, new running variance.
bool batch_norm_functional(LowerCall& call) {
  const DType dtype = DType::float32;
  if (call.type(0).dtype != dtype || !call.boolean(5)) return false;
  const Expr x = call.operand(0, dtype);
  const int rank = x.rank();
  const Flags dims = all_but(rank, 1);
  const ir::Sym elements = count(x, dims);
  if (elements.same(0) || elements.same(1)) return false;
  const Expr n = x.number(elements);
  const Expr mean = sum(x, dims) / n, off = x - mean;
  const Expr variance = sum(off * off, dims) / n;
  const Expr rstd = 1.0 / apply(Prim::Sqrt, variance + call.real(7));
  Expr y = off * rstd;
  if (!call.none(1)) y = y * along(call.operand(1, dtype), 1, rank);
  if (!call.none(2)) y = y + along(call.operand(2, dtype), 1, rank);
  const double m = call.real(6);
  call.give(y);
  call.give(flat(mean, dims));
  call.give(flat(rstd, dims));
  call.give(call.operand(3, dtype) * (1 - m) + flat(mean, dims) * m);
  return call.give(call.operand(4, dtype) * (1 - m) + flat(variance, dims) * unbiased(x, elements, m));
}

// grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask.
bool batch_norm_backward(LowerCall& call) {
  const DType dtype = DType::float32;
  if (call.type(1).dtype != dtype) return false;
  const Expr grad = call.operand(0, dtype), x = call.operand(1, dtype);
  const int rank = x.rank();
  const Flags dims = all_but(rank, 1);
  const ir::Sym elements = count(x, dims);
  if (elements.same(0)) return false;
  const Expr n = x.number(elements);
  const bool train = call.boolean(7);
  const Expr mean = along(call.operand(train ? 5 : 3, dtype), 1, rank);
  const Expr rstd = train ? along(call.operand(6, dtype), 1, rank)
                          : 1.0 / apply(Prim::Sqrt, along(call.operand(4, dtype), 1, rank) + call.real(8));
  const Expr off = x - mean;
  const Expr total = sum(grad, dims), dot = sum(grad * off, dims);
  const Expr weight = along(optional_or(call, 2, dtype, x, 1), 1, rank);
  if (call.wants(0)) {
    const Expr scale = rstd * weight;
    call.give(train ? (grad - total / n - off * (dot * rstd * rstd / n)) * scale : grad * scale);
  } else {
    call.give_nothing();
  }
  call.wants(1) ? call.give(flat(dot * rstd, dims)) : call.give_nothing();
  return call.wants(2) ? call.give(flat(total, dims)) : call.give_nothing();
}

constexpr LowerRow kRows[] = {
    GL_LOWER("native_layer_norm", "default", layer_norm),
    GL_LOWER("native_layer_norm_backward", "default", layer_norm_backward),
    GL_LOWER("_native_batch_norm_legit_functional", "default", batch_norm_functional),
    GL_LOWER("native_batch_norm_backward", "default", batch_norm_backward),
};

}  // namespace

std::span<const LowerRow> lower_norms_rows() { return kRows; }

}  // namespace graphlift::codegen
