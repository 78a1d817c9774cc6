// Owns: a convolution on CPU, forward and its two gradients, as data, and the interface of what computes one.
// Must not: include torch's or oneDNN's headers; know graphs or the Program that calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/contraction_post_op.h"
#include "ir/type.h"

namespace at {
class Tensor;
}

namespace graphlift::cpu {

class WeightCopies;

enum class ConvolutionKind : uint8_t {
  Forward,          // output = post(conv(input, weight) + bias)
  BackwardInput,    // input's gradient, from output's and weight
  BackwardWeights,  // weight's gradient, and bias's where there is one, from input and output's gradient
};

// Sizes and strides in elements, [batch, channels, space...]; weight [out, in / groups, window...]. One to three
// dimensions of space. Channels-last is just other strides.
struct StridedTensor {
  std::vector<int64_t> sizes, strides;
  bool operator==(const StridedTensor&) const = default;
};

struct ConvolutionSpec {
  ConvolutionKind kind = ConvolutionKind::Forward;
  ir::DType dtype = ir::DType::float32;
  StridedTensor input, weight, output;             // or their gradients, in the same layout
  std::vector<int64_t> stride, padding, dilation;  // one per dimension of space
  int64_t groups = 1;
  bool bias = false;         // as many numbers without gaps as output has channels, of dtype
  std::vector<PostOp> post;  // Forward only; operands have output's rank

  bool operator==(const ConvolutionSpec&) const = default;
  size_t hash() const;
  std::string str() const;
};

// Addresses of the first element: of tensors or, for the gradients, of what stands in their place. What is written
// overlaps none of the others.
struct ConvolutionOperands {
  const void* input = nullptr;   // written by BackwardInput
  const void* weight = nullptr;  // written by BackwardWeights
  const void* bias = nullptr;    // written by BackwardWeights
  const void* output = nullptr;  // written by Forward
  const void* const* post = nullptr;
  // Where the weight is read and may be remembered: the tensor that owns it, and who keeps its copies.
  const at::Tensor* weight_tensor = nullptr;
  WeightCopies* copies = nullptr;
};

// As Contraction: immutable, many threads at once, no GIL, torch's number of threads, no allocation after the first
// runs.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual void run(const ConvolutionOperands& operands) const = 0;
  virtual std::string implementation() const = 0;
};

// From the process-wide cache, or made now; null, and the reason, where torch's own operator is to be used.
std::shared_ptr<const Convolution> find_convolution(const ConvolutionSpec& spec, std::string* why = nullptr);

}  // namespace graphlift::cpu
