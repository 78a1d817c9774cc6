// Owns: the tables of dtypes and post-ops.
#include "backends/cpu/onednn/attributes.h"

#include <array>

#include "backends/cpu/onednn/primitive.h"

namespace graphlift::cpu::onednn {
namespace {

struct DataTypeRow {
  ir::DType dtype;
  dnnl_data_type_t type;
};
constexpr std::array kDataTypes = {
    DataTypeRow{ir::DType::float32, dnnl_f32},
    DataTypeRow{ir::DType::bfloat16, dnnl_bf16},
    DataTypeRow{ir::DType::float16, dnnl_f16},
};

// Where the two numbers of an element-wise operation come from.
enum class Numbers : uint8_t { Zero, MinusZero, One, Alpha, Both };

struct PostOpRow {
  PostOpKind kind;
  dnnl_alg_kind_t algorithm;
  Numbers numbers;  // element-wise only
};
constexpr std::array kPostOps = {
    // max(y, 0) of these kernels loses a NaN; y > 0 ? y : -0 * (exp(y) - 1) keeps it, and the sign of zero.
    PostOpRow{PostOpKind::Relu, dnnl_eltwise_elu, Numbers::MinusZero},
    PostOpRow{PostOpKind::LeakyRelu, dnnl_eltwise_relu, Numbers::Alpha},
    PostOpRow{PostOpKind::GeluErf, dnnl_eltwise_gelu_erf, Numbers::Zero},
    PostOpRow{PostOpKind::GeluTanh, dnnl_eltwise_gelu_tanh, Numbers::Zero},
    PostOpRow{PostOpKind::Silu, dnnl_eltwise_swish, Numbers::One},
    PostOpRow{PostOpKind::Sigmoid, dnnl_eltwise_logistic, Numbers::Zero},
    PostOpRow{PostOpKind::Tanh, dnnl_eltwise_tanh, Numbers::Zero},
    PostOpRow{PostOpKind::Linear, dnnl_eltwise_linear, Numbers::Both},
    PostOpRow{PostOpKind::Add, dnnl_binary_add},
    PostOpRow{PostOpKind::Sub, dnnl_binary_sub},
    PostOpRow{PostOpKind::Mul, dnnl_binary_mul},
    PostOpRow{PostOpKind::Div, dnnl_binary_div},
    PostOpRow{PostOpKind::Accumulate, dnnl_alg_kind_undef, Numbers::Alpha},
};
constexpr bool rows_in_order() {
  for (size_t i = 0; i < kPostOps.size(); ++i)
    if (static_cast<size_t>(kPostOps[i].kind) != i) return false;
  return true;
}
static_assert(rows_in_order(), "one row per post-op, in the order of GRAPHLIFT_POST_OPS");

// What an operand is to oneDNN: size 1 where it is broadcast; the strides of such dimensions are those of a dense
// tensor.
MemoryDesc operand_desc(const PostOperand& operand, const std::vector<int64_t>& sizes) {
  const size_t rank = sizes.size();
  std::vector<int64_t> own_sizes(rank), own_strides(rank);
  int64_t inner = 1;
  for (size_t i = rank; i-- > 0;) {
    const bool broadcast = operand.strides[i] == 0;
    own_sizes[i] = broadcast ? 1 : sizes[i];
    own_strides[i] = broadcast ? inner : operand.strides[i];
    inner *= own_sizes[i];
  }
  return strided_desc(own_sizes, own_strides, data_type(operand.dtype));
}

dnnl_status_t append(dnnl_post_ops_t ops, const PostOp& post, const std::vector<int64_t>& sizes) {
  const Library& dnnl = *library();
  const bool is_relu = post.kind == PostOpKind::LeakyRelu && post.alpha == 0;
  const PostOpRow& row = kPostOps[static_cast<size_t>(is_relu ? PostOpKind::Relu : post.kind)];
  switch (operand_of(post.kind)) {
    case PostOpOperand::Output:
      return dnnl.dnnl_post_ops_append_sum(ops, post.alpha, 0, dnnl_data_type_undef);
    case PostOpOperand::Tensor: {
      const MemoryDesc desc = operand_desc(post.operand, sizes);
      if (!desc) return dnnl_invalid_arguments;
      return dnnl.dnnl_post_ops_append_binary(ops, row.algorithm, desc.get());
    }
    case PostOpOperand::None:
      break;
  }
  const float fixed[] = {0.0f, -0.0f, 1.0f};
  const float alpha = row.numbers >= Numbers::Alpha ? post.alpha : fixed[static_cast<size_t>(row.numbers)];
  return dnnl.dnnl_post_ops_append_eltwise(ops, row.algorithm, alpha, row.numbers == Numbers::Both ? post.beta : 0);
}

}  // namespace

dnnl_data_type_t data_type(ir::DType dtype) {
  for (const DataTypeRow& row : kDataTypes)
    if (row.dtype == dtype) return row.type;
  return dnnl_data_type_undef;
}

Attributes post_op_attributes(const std::vector<PostOp>& post, const std::vector<int64_t>& sizes) {
  const Library& dnnl = *library();
  Attributes attributes = new_attributes();
  if (post.empty()) return attributes;
  dnnl_post_ops_t ops = nullptr;
  check(dnnl.dnnl_post_ops_create(&ops), "making post-ops");
  const Owned<dnnl_post_ops_t> owned(ops);
  for (const PostOp& it : post)
    if (append(ops, it, sizes) != dnnl_success) return nullptr;
  if (dnnl.dnnl_primitive_attr_set_post_ops(attributes.get(), ops) != dnnl_success) return nullptr;
  return attributes;
}

std::vector<int> post_op_arguments(const std::vector<PostOp>& post) {
  std::vector<int> out;
  for (size_t i = 0; i < post.size(); ++i)
    if (operand_of(post[i].kind) == PostOpOperand::Tensor)
      out.push_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1);
  return out;
}

}  // namespace graphlift::cpu::onednn
