// Owns: the operations that a contraction or convolution may apply to its result before storing it, as data.
// Must not: include torch's or oneDNN's headers, or know which implementation can do what.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/type.h"

namespace graphlift::cpu {

// ROW(identifier, "name", operand, "formula"); y is the value so far, t the operand, alpha and beta the two numbers of
// the row. NaN, infinity and the sign of zero come out as of torch's operators; minimum, maximum and clamp are no rows
// because kernels lose a NaN there. operand: None, Tensor (reads one more tensor), Output (reads what the output held
// before).
// clang-format off
#define GRAPHLIFT_POST_OPS(ROW)                                                    \
  ROW(Relu, "relu", None, "max(y, 0)")                                             \
  ROW(LeakyRelu, "leaky_relu", None, "y > 0 ? y : alpha * y")                      \
  ROW(GeluErf, "gelu", None, "gelu by erf")                                        \
  ROW(GeluTanh, "gelu_tanh", None, "gelu by tanh")                                 \
  ROW(Silu, "silu", None, "y * sigmoid(y)")                                        \
  ROW(Sigmoid, "sigmoid", None, "1 / (1 + exp(-y))")                               \
  ROW(Tanh, "tanh", None, "tanh(y)")                                               \
  ROW(Linear, "linear", None, "alpha * y + beta")                                  \
  ROW(Add, "add", Tensor, "y + t")                                                 \
  ROW(Sub, "sub", Tensor, "y - t")                                                 \
  ROW(Mul, "mul", Tensor, "y * t")                                                 \
  ROW(Div, "div", Tensor, "y / t")                                                 \
  ROW(Accumulate, "accumulate", Output, "y + alpha * (what the output held)")
// clang-format on

enum class PostOpKind : uint8_t {
#define ROW(identifier, name, operand, formula) identifier,
  GRAPHLIFT_POST_OPS(ROW)
#undef ROW
};

enum class PostOpOperand : uint8_t { None, Tensor, Output };

std::string_view name(PostOpKind kind);
PostOpOperand operand_of(PostOpKind kind);

// Of one more tensor that a post-op reads: strides in elements, one per dimension of the output, 0 where it is
// broadcast.
struct PostOperand {
  ir::DType dtype = ir::DType::float32;
  std::vector<int64_t> strides;
  bool operator==(const PostOperand&) const = default;
};

struct PostOp {
  PostOpKind kind = PostOpKind::Relu;
  float alpha = 0;
  float beta = 0;
  PostOperand operand;  // rows with Tensor only
  bool operator==(const PostOp&) const = default;
};

}  // namespace graphlift::cpu
