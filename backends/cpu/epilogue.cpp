// Owns: the table of calls that are post-ops.
#include "backends/cpu/epilogue.h"

#include <algorithm>
#include <string_view>

#include "ops/layout.h"

namespace graphlift::cpu {
namespace {

using ir::Node;
using ir::TensorType;

// What became of the call's argument `at`; nullopt: no post-op.
using Rule = std::optional<PostOp> (*)(const Node& call);

std::optional<double> real(const ir::Arg& arg) {
  if (const auto* number = std::get_if<double>(&arg)) return *number;
  if (const ir::Sym* number = arg.sym(); number && number->is_constant())
    return static_cast<double>(number->constant());
  return std::nullopt;
}

std::optional<PostOp> linear(std::optional<double> alpha, std::optional<double> beta) {
  if (!alpha || !beta) return std::nullopt;
  return PostOp{PostOpKind::Linear, static_cast<float>(*alpha), static_cast<float>(*beta)};
}

template <PostOpKind kind>
std::optional<PostOp> plain(const Node&) {
  return PostOp{kind};
}

std::optional<PostOp> gelu(const Node& call) {
  const auto* how = std::get_if<std::string>(&call.args[1]);
  if (!how) return std::nullopt;
  return PostOp{*how == "tanh" ? PostOpKind::GeluTanh : PostOpKind::GeluErf};
}

std::optional<PostOp> leaky_relu(const Node& call) {
  const auto slope = real(call.args[1]);
  return slope ? std::optional<PostOp>({PostOpKind::LeakyRelu, static_cast<float>(*slope)}) : std::nullopt;
}

// self, other, alpha.
template <PostOpKind kind>
std::optional<PostOp> sum(const Node& call) {
  if (!ir::is_number(call.args[2], 1)) return std::nullopt;
  if (call.args[1].value()) return PostOp{kind};
  const auto number = real(call.args[1]);
  return linear(1, number && kind == PostOpKind::Sub ? -*number : number);
}

// self, other.
std::optional<PostOp> product(const Node& call) {
  if (call.args[1].value()) return PostOp{PostOpKind::Mul};
  return linear(real(call.args[1]), 0);
}

struct EpilogueRow {
  std::string_view name;
  Rule rule;
  bool commutes;  // the value may be the second argument, too
};

constexpr EpilogueRow kEpilogues[] = {
    {"aten::relu.default", plain<PostOpKind::Relu>, false},
    {"aten::gelu.default", gelu, false},
    {"aten::silu.default", plain<PostOpKind::Silu>, false},
    {"aten::sigmoid.default", plain<PostOpKind::Sigmoid>, false},
    {"aten::tanh.default", plain<PostOpKind::Tanh>, false},
    {"aten::leaky_relu.default", leaky_relu, false},
    {"aten::add.Tensor", sum<PostOpKind::Add>, true},
    {"aten::sub.Tensor", sum<PostOpKind::Sub>, false},
    {"aten::mul.Tensor", product, true},
};

bool is_row_by_row(const TensorType& type) { return ops::same(type.strides, ir::contiguous_strides(type.sizes)); }

// The other tensor of a call, as the first call's result is seen.
std::optional<PostOperand> operand(const TensorType& other, const TensorType& value, const TensorType& first) {
  if (other.dtype != first.dtype || !ir::is_constant(other.sizes) || !ir::is_constant(other.strides))
    return std::nullopt;
  PostOperand made{other.dtype, {}};
  const bool whole = ops::same(other.sizes, value.sizes) && ops::same(other.strides, value.strides);
  const bool row = other.rank() == 1 && other.strides[0].same(1) && other.sizes[0].same(value.sizes.back()) &&
                   is_row_by_row(value) && other.sizes[0].same(first.sizes.back());
  if (!whole && !row) return std::nullopt;
  for (const ir::Sym& stride : first.strides) made.strides.push_back(whole ? stride.constant() : 0);
  if (row && !whole) made.strides.back() = 1;
  return made;
}

std::optional<PostOp> post_op(const Node& call, const ir::ValueRef& value, const TensorType& first) {
  const auto row = std::find_if(std::begin(kEpilogues), std::end(kEpilogues),
                                [&](const EpilogueRow& it) { return it.name == call.op.str(); });
  if (row == std::end(kEpilogues) || !call.outputs[0]) return std::nullopt;
  const TensorType &from = ir::type_of(value), &to = *call.outputs[0];
  if (to.dtype != from.dtype || !ops::same(to.sizes, from.sizes) || !ops::same(to.strides, from.strides))
    return std::nullopt;
  const bool second = !(call.args[0].value() && *call.args[0].value() == value);
  if (second && !row->commutes) return std::nullopt;
  std::optional<PostOp> made = row->rule(call);
  if (!made || operand_of(made->kind) != PostOpOperand::Tensor) return made;
  const ir::ValueRef* other = call.args[second ? 0 : 1].value();
  if (!other) return std::nullopt;
  const auto read = operand(ir::type_of(*other), from, first);
  if (!read) return std::nullopt;
  made->operand = *read;
  return made;
}

// oneDNN's activations are slower than those of our kernels, which find the product in the cache; they win where a call
// of a kernel is what costs.
constexpr int64_t kMostActivated = 1024;

bool is_arithmetic(const PostOp& post) {
  return operand_of(post.kind) == PostOpOperand::Tensor || post.kind == PostOpKind::Linear;
}

}  // namespace

bool worth_finishing(const codegen::NativeOperation& operation, const std::vector<PostOp>& post) {
  const ir::Sym elements = ops::product(operation.node->outputs[0]->sizes);
  return std::all_of(post.begin(), post.end(), is_arithmetic) || elements.constant() <= kMostActivated;
}

bool is_plain_view(const Node& call) {
  if (call.op.str() != "aten::view.default" && call.op.str() != "aten::_unsafe_view.default") return false;
  return call.outputs[0] && is_row_by_row(*call.outputs[0]) && is_row_by_row(ir::type_of(*call.args[0].value()));
}

std::optional<std::vector<PostOp>> post_ops(const codegen::NativeOperation& operation) {
  std::vector<PostOp> made;
  if (operation.epilogue.empty()) return made;
  const TensorType& first = *operation.node->outputs[0];
  if (!ir::is_constant(first.sizes) || !ir::is_constant(first.strides)) return std::nullopt;
  const Node* before = operation.node;
  for (const Node* call : operation.epilogue) {
    const ir::ValueRef value{const_cast<Node*>(before), 0};
    before = call;
    if (is_plain_view(*call)) continue;
    std::optional<PostOp> next = post_op(*call, value, first);
    if (!next) return std::nullopt;
    made.push_back(std::move(*next));
  }
  return made;
}

}  // namespace graphlift::cpu
