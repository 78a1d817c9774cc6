// Owns: see varying_matmul.h. The same operators as torch's composition, for the same layouts.
#include "torch/varying_matmul.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/accumulate.h>
#include <torch/library.h>

#include <mutex>
#include <vector>

#include "torch/fake.h"

namespace graphlift::torch_layer {
namespace {

// Above gradients, autocast and our recorder; below what maps over batches.
constexpr auto kKey = c10::DispatchKey::PythonTLSSnapshot;

using Sizes = std::vector<c10::SymInt>;

bool varies(const at::Tensor& tensor) {
  return fake_impl(tensor) && tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

// A large operand times a matrix or vector is one product of its rows, where they lie one behind the other, or where
// the small one's gradient would be a large tensor otherwise.
bool should_fold(const at::Tensor& a, const at::Tensor& b, const at::Tensor& large, const at::Tensor& small) {
  if (large.dim() < 3 || small.dim() > 2) return false;
  if (small.requires_grad() && c10::GradMode::is_enabled()) return true;
  if (a.dim() == 2 && b.dim() > 2) return false;
  const auto sizes = large.sym_sizes(), strides = large.sym_strides();
  for (size_t d = 0; d + 2 < sizes.size(); ++d)
    if (strides[d] != strides[d + 1] * sizes[d + 1]) return false;
  return true;
}

at::Tensor folded(const at::Tensor& large, const at::Tensor& small, bool transposed) {
  const auto sizes = large.sym_sizes();
  Sizes shape(sizes.begin(), sizes.end() - 1);
  const at::Tensor rows = large.reshape_symint({c10::multiply_integers(shape), sizes.back()});
  if (small.dim() == 1) return at::_unsafe_view_symint(rows.mv(small), shape);
  shape.push_back(small.sym_size(1));
  const at::Tensor result = at::_unsafe_view_symint(rows.mm(small), shape);
  return transposed ? result.mT().contiguous() : result;
}

at::Tensor batched(const at::Tensor& a, const at::Tensor& b) {
  const auto a_sizes = a.sym_sizes(), b_sizes = b.sym_sizes();
  const size_t a_batch = a.dim() > 2 ? a_sizes.size() - 2 : 0, b_batch = b.dim() > 2 ? b_sizes.size() - 2 : 0;
  const c10::SymInt n = a.dim() > 1 ? a_sizes[a_sizes.size() - 2] : c10::SymInt(1), inner = a_sizes.back();
  const c10::SymInt rows = b.dim() > 1 ? b_sizes[b_sizes.size() - 2] : b_sizes.back();
  const c10::SymInt p = b.dim() > 1 ? b_sizes.back() : c10::SymInt(1);
  Sizes shape = at::infer_size_symint(a_sizes.slice(0, a_batch), b_sizes.slice(0, b_batch));
  const c10::SymInt count = c10::multiply_integers(shape);
  const auto expanded = [&](const at::Tensor& of, const c10::SymInt& first, const c10::SymInt& second) {
    Sizes to = shape;
    to.push_back(first), to.push_back(second);
    return of.expand_symint(to).reshape_symint({count, first, second});
  };
  const at::Tensor left = expanded(a, n, inner), right = expanded(b.dim() == 1 ? b.unsqueeze(1) : b, rows, p);
  if (a.dim() > 1) shape.push_back(n);
  if (b.dim() > 1) shape.push_back(p);
  const at::Tensor result = left.bmm(right);
  return at::_unsafe_view_symint(b.dim() == 1 ? result.squeeze(-1) : result, shape);
}

at::Tensor matmul_by_sizes(const at::Tensor& a, const at::Tensor& b) {
  const bool transposed = b.dim() > a.dim();
  const at::Tensor large = transposed ? b.mT() : a;
  const at::Tensor small = !transposed ? b : a.dim() == 2 ? a.t() : a;
  return should_fold(a, b, large, small) ? folded(large, small, transposed) : batched(a, b);
}

void matmul_of_stand_ins(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const at::Tensor &a = torch::jit::peek(*stack, 0, 2).toTensor(), &b = torch::jit::peek(*stack, 1, 2).toTensor();
  const bool large = a.dim() > 0 && b.dim() > 0 && (a.dim() > 2 || b.dim() > 2);
  if (!large || !(varies(a) || varies(b)))
    return op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
  at::Tensor result = matmul_by_sizes(a, b);
  torch::jit::drop(*stack, 2);
  torch::jit::push(*stack, std::move(result));
}

}  // namespace

void take_varying_matmuls() {
  static std::once_flag once;
  std::call_once(once, [] {
    static auto& library = *new torch::Library(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
    library.impl("matmul", torch::CppFunction::makeFromBoxedFunction<&matmul_of_stand_ins>());
  });
}

}  // namespace graphlift::torch_layer
