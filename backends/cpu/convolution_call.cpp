// Owns: see convolution_call.h.
#include "backends/cpu/convolution_call.h"

#include <algorithm>

#include "backends/cpu/convolution.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/result_layout.h"
#include "backends/cpu/weight_copies.h"
#include "base/error.h"

namespace graphlift::cpu {
namespace {

using codegen::NativeOperation;

constexpr std::string_view kForward = "aten::convolution.default";
constexpr std::string_view kBackward = "aten::convolution_backward.default";

// Arguments by place. Forward: input, weight, bias, then the shape; backward: grad, input, weight, bias sizes, then the
// shape, output mask.
struct ShapeArguments {
  size_t stride, padding, dilation, transposed, output_padding, groups;
};
constexpr ShapeArguments kForwardShape{3, 4, 5, 6, 7, 8};
constexpr ShapeArguments kBackwardShape{4, 5, 6, 7, 8, 9};

const ShapeArguments& shape_of(const ir::Node& node) {
  return node.op.str() == kForward ? kForwardShape : kBackwardShape;
}

std::optional<std::vector<int64_t>> integers(const ir::Arg& arg) {
  std::vector<int64_t> values;
  const ir::ArgList* list = arg.list();
  if (!list) return std::nullopt;
  for (const ir::Arg& item : *list) {
    if (!item.sym() || !item.sym()->is_constant()) return std::nullopt;
    values.push_back(item.sym()->constant());
  }
  return values;
}

std::optional<StridedTensor> strided(const ir::TensorType& type) {
  StridedTensor tensor;
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    if (!type.sizes[i].is_constant() || !type.strides[i].is_constant()) return std::nullopt;
    tensor.sizes.push_back(type.sizes[i].constant());
    tensor.strides.push_back(type.strides[i].constant());
  }
  return tensor;
}

// What all computations of one call share; nullopt: not ours.
std::optional<ConvolutionSpec> common_spec(const ir::Node& node) {
  const ShapeArguments& at = shape_of(node);
  const auto stride = integers(node.args[at.stride]), padding = integers(node.args[at.padding]);
  const auto dilation = integers(node.args[at.dilation]);
  const ir::Sym* groups = node.args[at.groups].sym();
  const bool* transposed = std::get_if<bool>(&node.args[at.transposed]);
  if (!stride || !padding || !dilation || !groups || !groups->is_constant() || !transposed || *transposed)
    return std::nullopt;
  ConvolutionSpec spec;
  spec.stride = *stride;
  spec.padding = *padding;
  spec.dilation = *dilation;
  spec.groups = groups->constant();
  return spec;
}

// One result of a call and where its operands are: places among the tensors of the call, -1 for none, and -2 - i for
// result i.
struct ConvolutionPart {
  std::shared_ptr<const Convolution> convolution;
  int input, weight, bias, output;
  std::unique_ptr<WeightCopies> copies = nullptr;  // null: the weight may not be remembered
};

class ConvolutionCall final : public reference::NativeCall {
 public:
  ConvolutionCall(const NativeOperation& operation, const NativeOptions& options)
      : operands_(operation.operands), options_(options) {
    for (const auto& type : operation.last().outputs)
      results_.push_back(type ? std::make_unique<ResultLayout>(*type) : nullptr);
    usable_ = operation.node->op.str() == kForward ? plan_forward(operation) : plan_backward(operation);
  }

  bool usable() const { return usable_; }

  bool fills(size_t) const override { return true; }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    for (size_t i = 0; i < results_.size(); ++i)
      if (results_[i] && !outputs[i].defined()) outputs[i] = results_[i]->allocate(symbols);
    for (const ConvolutionPart& part : parts_) {
      auto place = [&](int which) -> const void* {
        if (which == -1) return nullptr;
        if (which <= -2) return outputs[static_cast<size_t>(-2 - which)].const_data_ptr();
        const auto i = static_cast<size_t>(which);
        const auto* data = static_cast<const char*>(inputs[i]->const_data_ptr());
        return data + operands_[i].offset.constant() * ir::bytes(operands_[i].dtype);
      };
      c10::SmallVector<const void*, 4> post;
      for (size_t i = first_post_; i < operands_.size(); ++i) post.push_back(place(static_cast<int>(i)));
      ConvolutionOperands operands{place(part.input), place(part.weight), place(part.bias), place(part.output),
                                   post.data()};
      operands.copies = part.copies.get();
      if (operands.copies) operands.weight_tensor = inputs[part.weight];
      part.convolution->run(operands);
    }
  }

 private:
  bool add(ConvolutionSpec spec, const ir::TensorType& input, const ir::TensorType& weight,
           const ir::TensorType& output, ConvolutionPart part) {
    const auto i = strided(input), w = strided(weight), o = strided(output);
    if (!i || !w || !o) return false;
    spec.input = *i;
    spec.weight = *w;
    spec.output = *o;
    spec.dtype = output.dtype;
    part.convolution = find_convolution(spec);
    if (!part.convolution) return false;
    if (part.weight >= 0 && options_.is_weight(static_cast<size_t>(part.weight)))
      part.copies = std::make_unique<WeightCopies>();
    parts_.push_back(std::move(part));
    return true;
  }

  bool plan_forward(const NativeOperation& operation) {
    auto spec = common_spec(*operation.node);
    spec->kind = ConvolutionKind::Forward;
    spec->bias = operation.node->args[2].value() != nullptr;
    first_post_ = spec->bias ? 3 : 2;
    if (!operation.epilogue.empty()) {
      const auto post = post_ops(operation);
      if (!post) return false;
      spec->post = *post;
    }
    return add(*spec, operands_[0], operands_[1], *operation.node->outputs[0],
               {nullptr, 0, 1, spec->bias ? 2 : -1, -2});
  }

  bool plan_backward(const NativeOperation& operation) {
    if (!operation.epilogue.empty()) return false;
    first_post_ = operands_.size();
    const auto spec = common_spec(*operation.node);
    const auto& outputs = operation.node->outputs;
    if (outputs[2] && !outputs[1]) return false;  // a bias' gradient alone is a sum
    if (outputs[0]) {
      ConvolutionSpec data = *spec;
      data.kind = ConvolutionKind::BackwardInput;
      if (!add(data, *outputs[0], operands_[2], operands_[0], {nullptr, -2, 2, -1, 0})) return false;
    }
    if (!outputs[1]) return true;
    ConvolutionSpec weights = *spec;
    weights.kind = ConvolutionKind::BackwardWeights;
    weights.bias = outputs[2].has_value();
    return add(weights, operands_[1], *outputs[1], operands_[0], {nullptr, 1, -3, weights.bias ? -4 : -1, 0});
  }

  const std::vector<ir::TensorType> operands_;
  const NativeOptions options_;
  std::vector<std::unique_ptr<ResultLayout>> results_;
  std::vector<ConvolutionPart> parts_;
  size_t first_post_ = 0;  // of the operands: those from here on are the post-ops'
  bool usable_ = false;
};

}  // namespace

bool is_convolution(const ir::Node& node) {
  const bool forward = node.op.str() == kForward;
  if (!forward && node.op.str() != kBackward) return false;
  for (const auto& type : node.outputs)
    if (type && (!type->device.is_cpu() || type->dtype != ir::DType::float32)) return false;
  bool fits = common_spec(node).has_value();
  for (const ir::Arg& arg : node.args) {
    ir::for_each_value(arg, [&](const ir::ValueRef& value) {
      const ir::TensorType& type = ir::type_of(value);
      fits = fits && type.dtype == ir::DType::float32 && type.offset.is_constant();
    });
  }
  return fits;
}

std::unique_ptr<reference::NativeCall> make_convolution_call(const NativeOperation& operation,
                                                             const NativeOptions& options) {
  auto call = std::make_unique<ConvolutionCall>(operation, options);
  if (!call->usable()) return nullptr;
  return call;
}

}  // namespace graphlift::cpu
