// Owns: convolutions as oneDNN's primitives. Weights are always laid as the kernel likes: reordered in each run (they
// are small), or a copy that is kept (weight_copies.h); activations lie as the spec says when channels are last, and
// are reordered otherwise: kernels on plain contiguous activations are two to three times slower than the reorders.
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <array>

#include "backends/cpu/onednn.h"
#include "backends/cpu/onednn/attributes.h"
#include "backends/cpu/onednn/primitive.h"
#include "base/text.h"

namespace graphlift::cpu {
namespace onednn {
namespace {

using Sizes = std::vector<int64_t>;

// [out, in / groups, window...] as [groups, out / groups, in / groups, window...].
StridedTensor grouped(const StridedTensor& weight, int64_t groups) {
  if (groups == 1) return weight;
  StridedTensor out = weight;
  out.sizes[0] /= groups;
  out.sizes.insert(out.sizes.begin(), groups);
  out.strides.insert(out.strides.begin(), weight.strides[0] * (weight.sizes[0] / groups));
  return out;
}

bool channels_last(const StridedTensor& tensor) { return tensor.strides[1] == 1; }

MemoryDesc as_given(const StridedTensor& tensor, dnnl_data_type_t type) {
  return strided_desc(tensor.sizes, tensor.strides, type);
}

// Memory descriptions that a primitive is asked for.
struct Wanted {
  MemoryDesc input, weight, bias, output;
};

// `free`: also where channels are last the primitive may choose (the given layout has no kernel).
Wanted wanted(const ConvolutionSpec& spec, bool free) {
  const dnnl_data_type_t type = data_type(spec.dtype);
  auto activation = [&](const StridedTensor& it) {
    return channels_last(it) && !free ? as_given(it, type) : any_layout_desc(it.sizes, type);
  };
  Wanted out{activation(spec.input), any_layout_desc(grouped(spec.weight, spec.groups).sizes, type), nullptr,
             activation(spec.output)};
  if (spec.bias) out.bias = strided_desc({spec.output.sizes[1]}, {1}, type);
  return out;
}

// What padding at the end makes the sizes fit; dilation as oneDNN counts it.
struct Window {
  Sizes dilation, padding_end;
  explicit Window(const ConvolutionSpec& spec) {
    for (size_t i = 0; i < spec.stride.size(); ++i) {
      const int64_t window = (spec.weight.sizes[i + 2] - 1) * spec.dilation[i] + 1;
      dilation.push_back(spec.dilation[i] - 1);
      padding_end.push_back((spec.output.sizes[i + 2] - 1) * spec.stride[i] + window - spec.input.sizes[i + 2] -
                            spec.padding[i]);
    }
  }
};

PrimitiveDesc describe_forward(const ConvolutionSpec& spec, const Wanted& want, bool inference) {
  const Library& dnnl = *library();
  const Window window(spec);
  const Attributes attributes = post_op_attributes(spec.post, spec.output.sizes);
  dnnl_primitive_desc_t out = nullptr;
  if (attributes && want.input && want.weight && want.output)
    dnnl.dnnl_convolution_forward_primitive_desc_create(
        &out, dnnl.engine, inference ? dnnl_forward_inference : dnnl_forward_training, dnnl_convolution_direct,
        want.input.get(), want.weight.get(), want.bias.get(), want.output.get(), spec.stride.data(),
        window.dilation.data(), spec.padding.data(), window.padding_end.data(), attributes.get());
  return PrimitiveDesc(out);
}

PrimitiveDesc describe_gradient(const ConvolutionSpec& spec, const Wanted& want) {
  const Library& dnnl = *library();
  const Window window(spec);
  const PrimitiveDesc hint = describe_forward(spec, want, false);
  if (!hint) return nullptr;
  const Attributes attributes = new_attributes();
  dnnl_primitive_desc_t out = nullptr;
  if (spec.kind == ConvolutionKind::BackwardInput)
    dnnl.dnnl_convolution_backward_data_primitive_desc_create(
        &out, dnnl.engine, dnnl_convolution_direct, want.input.get(), want.weight.get(), want.output.get(),
        spec.stride.data(), window.dilation.data(), spec.padding.data(), window.padding_end.data(), hint.get(),
        attributes.get());
  else
    dnnl.dnnl_convolution_backward_weights_primitive_desc_create(
        &out, dnnl.engine, dnnl_convolution_direct, want.input.get(), want.weight.get(), want.bias.get(),
        want.output.get(), spec.stride.data(), window.dilation.data(), spec.padding.data(), window.padding_end.data(),
        hint.get(), attributes.get());
  return PrimitiveDesc(out);
}

PrimitiveDesc describe(const ConvolutionSpec& spec) {
  for (bool free : {false, true}) {
    const Wanted want = wanted(spec, free);
    PrimitiveDesc desc = unless_reference(spec.kind == ConvolutionKind::Forward ? describe_forward(spec, want, true)
                                                                                : describe_gradient(spec, want));
    if (desc) return desc;
  }
  return nullptr;
}

// Which addresses a kind takes, in the order of ConvolutionOperands, and which of them it writes.
struct KindRow {
  ConvolutionKind kind;
  int input, weight, bias, output;  // DNNL_ARG_*
  Flow input_flow, weight_flow, output_flow;
};
constexpr std::array kKinds = {
    KindRow{ConvolutionKind::Forward, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, Flow::In, Flow::In,
            Flow::Out},
    KindRow{ConvolutionKind::BackwardInput, DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_DIFF_DST, Flow::Out,
            Flow::In, Flow::In},
    KindRow{ConvolutionKind::BackwardWeights, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS,
            DNNL_ARG_DIFF_DST, Flow::In, Flow::Out, Flow::In},
};

std::vector<Argument> arguments_of(const ConvolutionSpec& spec) {
  const dnnl_data_type_t type = data_type(spec.dtype);
  const KindRow& row = kKinds[static_cast<size_t>(spec.kind)];
  const bool reads_output = std::any_of(spec.post.begin(), spec.post.end(),
                                        [](const PostOp& it) { return operand_of(it.kind) == PostOpOperand::Output; });
  std::vector<Argument> out = {
      {row.input, row.input_flow, as_given(spec.input, type)},
      {row.weight, row.weight_flow, as_given(grouped(spec.weight, spec.groups), type), row.weight_flow == Flow::In},
      {row.output, reads_output ? Flow::Both : row.output_flow, as_given(spec.output, type)},
  };
  if (spec.bias) out.push_back({row.bias});
  for (int it : post_op_arguments(spec.post)) out.push_back({it});
  return out;
}

class OneDnnConvolution final : public Convolution {
 public:
  OneDnnConvolution(const ConvolutionSpec& spec, std::unique_ptr<const Primitive> primitive)
      : spec_(spec), primitive_(std::move(primitive)) {}

  void run(const ConvolutionOperands& operands) const override {
    c10::SmallVector<const void*, 8> addresses = {operands.input, operands.weight, operands.output};
    if (spec_.bias) addresses.push_back(operands.bias);
    size_t next = 0;
    for (const PostOp& it : spec_.post)
      if (operand_of(it.kind) == PostOpOperand::Tensor) addresses.push_back(operands.post[next++]);
    const Variant& variant = primitive_->variant();
    WeightCopies::Copy copy;
    if (operands.copies && variant.form())
      copy = operands.copies->find(*operands.weight_tensor, operands.weight, variant.form(),
                                   [&] { return variant.copy(operands.weight); });
    if (!copy) return variant.run(const_cast<void* const*>(addresses.data()));
    addresses[1] = copy->data();
    variant.run_with_copy(const_cast<void* const*>(addresses.data()));
  }
  std::string implementation() const override {
    const Variant& variant = primitive_->variant();
    return cat("onednn ", variant.implementation(), ", ", variant.reorders(), " reorders");
  }

 private:
  const ConvolutionSpec spec_;
  const std::unique_ptr<const Primitive> primitive_;
};

// An operand of a post-op must lie as the output of the kernel does, which only a given layout tells ahead.
bool operands_fit(const ConvolutionSpec& spec) {
  return channels_last(spec.output) || std::none_of(spec.post.begin(), spec.post.end(), [](const PostOp& it) {
           return operand_of(it.kind) == PostOpOperand::Tensor;
         });
}

}  // namespace
}  // namespace onednn

std::unique_ptr<const Convolution> make_onednn_convolution(const ConvolutionSpec& spec, std::string* why) {
  if (!onednn::library(why)) return nullptr;
  if (onednn::data_type(spec.dtype) == dnnl_data_type_undef || !onednn::operands_fit(spec)) {
    if (why) *why = "oneDNN has no such dtype, or a post-op reads a tensor whose channels are not last";
    return nullptr;
  }
  auto primitive = onednn::Primitive::make([spec] { return onednn::describe(spec); }, onednn::arguments_of(spec));
  if (!primitive) {
    if (why) *why = "oneDNN has only reference loops for it";
    return nullptr;
  }
  return std::make_unique<onednn::OneDnnConvolution>(spec, std::move(primitive));
}

}  // namespace graphlift::cpu
