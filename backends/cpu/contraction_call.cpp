// Owns: see contraction_call.h.
#include "backends/cpu/contraction_call.h"

#include <algorithm>

#include "backends/cpu/contraction.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/result_layout.h"
#include "backends/cpu/tuning.h"
#include "backends/cpu/weight_copies.h"
#include "base/error.h"
#include "base/log.h"

namespace graphlift::cpu {
namespace {

using codegen::NativeOperation;

// Operands by their place among the tensors of the call; bias -1: none.
struct Product {
  std::string_view op;
  int bias, a, b;
  int beta, alpha;  // places among the arguments; -1: the operator has none
};

constexpr Product kProducts[] = {
    {"aten::mm.default", -1, 0, 1, -1, -1},
    {"aten::bmm.default", -1, 0, 1, -1, -1},
    {"aten::addmm.default", 0, 1, 2, 3, 4},
};

const Product* find_product(const ir::Node& node) {
  for (const Product& product : kProducts)
    if (node.op.str() == product.op) return &product;
  return nullptr;
}

// One row of numbers without gaps that all rows of the result get.
bool is_bias(const ir::TensorType& type, const ir::TensorType& result) {
  return type.rank() == 1 && type.sizes[0].same(result.sizes.back()) && type.strides[0].same(1) &&
         type.dtype == result.dtype;
}

MatrixLayout layout_of(const ir::TensorType& type, std::span<const int64_t> symbols) {
  const size_t rank = type.sizes.size();
  MatrixLayout layout;
  for (size_t i = 0; i + 2 < rank; ++i) layout.batch.push_back(type.strides[i].eval(symbols));
  layout.row = type.strides[rank - 2].eval(symbols);
  layout.column = type.strides[rank - 1].eval(symbols);
  return layout;
}

class ContractionCall final : public reference::NativeCall {
 public:
  ContractionCall(const NativeOperation& operation, const Product& product, const NativeOptions& options)
      : product_(product),
        operands_(operation.operands),
        type_(*operation.node->outputs[0]),
        result_(*operation.last().outputs[0]) {
    for (const ir::TensorType& type : operands_) offsets_.push_back(type.offset);
    std::optional<std::vector<PostOp>> post = post_ops(operation);
    if (!post) return;
    if (options.is_weight(static_cast<size_t>(product.b))) copies_ = std::make_unique<WeightCopies>();
    post_ = std::move(*post);
    auto constant = [](const ir::TensorType& type) { return ir::is_constant(type); };
    is_static_ = std::all_of(operands_.begin(), operands_.end(), constant) && ir::is_constant(type_);
    if (!is_static_) hint_at_copies();
    if (is_static_) contraction_ = options.tuned ? tuned_contraction(spec({})) : find_contraction(spec({}));
    is_usable_ = is_static_ ? contraction_ != nullptr : post_.empty();
  }

  bool usable() const { return is_usable_; }

  bool fills(size_t) const override { return true; }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    if (!outputs[0].defined()) outputs[0] = result_.allocate(symbols);
    std::shared_ptr<const Contraction> found;
    ContractionOperands operands;
    operands.a = place(inputs, product_.a, symbols);
    operands.b = place(inputs, product_.b, symbols);
    operands.b_tensor = inputs[product_.b];
    operands.copies = copies_.get();
    at::Tensor a, b;  // copies of what no implementation reads as it lies
    if (!is_static_) {
      ContractionSpec wanted = spec(symbols);
      if (is_expanded(wanted.a)) operands.a = densely(product_.a, operands.a, symbols, &wanted.a, &a);
      if (is_expanded(wanted.b)) {
        operands.b = densely(product_.b, operands.b, symbols, &wanted.b, &b);
        operands.copies = nullptr;
      }
      std::string why;
      found = find_contraction(wanted, &why);
      GL_CHECK(found != nullptr, "no contraction for sizes that vary: " + why);
    }
    operands.bias = product_.bias < 0 ? nullptr : place(inputs, product_.bias, symbols);
    operands.c = outputs[0].mutable_data_ptr();
    c10::SmallVector<const void*, 4> post;
    if (!post_.empty())
      for (size_t i = product_.bias < 0 ? 2 : 3; i < operands_.size(); ++i)
        post.push_back(place(inputs, static_cast<int>(i), symbols));
    operands.post = post.data();
    (is_static_ ? contraction_ : found)->run(operands);
  }

 private:
  // An expanded gradient, say: its rows, or its columns, are one and the same memory.
  static bool is_expanded(const MatrixLayout& layout) { return layout.row == 0 || layout.column == 0; }

  void hint_at_copies() const {
    for (const int which : {product_.a, product_.b}) {
      const ir::Dims& strides = operands_[static_cast<size_t>(which)].strides;
      if (strides.back().same(0) || strides[strides.size() - 2].same(0))
        log(Artifact::PerfHints, "a product of varying sizes copies an expanded operand in each call");
    }
  }

  const void* place(const at::Tensor* const* inputs, int which, std::span<const int64_t> symbols) const {
    const auto i = static_cast<size_t>(which);
    const auto* data = static_cast<const char*>(inputs[i]->const_data_ptr());
    return data + offsets_[i].eval(symbols) * ir::bytes(operands_[i].dtype);
  }

  const void* densely(int which, const void* data, std::span<const int64_t> symbols, MatrixLayout* layout,
                      at::Tensor* copy) const {
    const ir::TensorType& type = operands_[static_cast<size_t>(which)];
    c10::SmallVector<int64_t, 4> sizes, strides;
    for (const ir::Sym& size : type.sizes) sizes.push_back(size.eval(symbols));
    for (const ir::Sym& stride : type.strides) strides.push_back(stride.eval(symbols));
    const auto options = at::TensorOptions(static_cast<at::ScalarType>(type.dtype));
    *copy = at::from_blob(const_cast<void*>(data), sizes, strides, options).contiguous();
    layout->batch.clear();
    for (int64_t i = 0; i + 2 < copy->dim(); ++i) layout->batch.push_back(copy->stride(i));
    layout->row = copy->stride(-2);
    layout->column = copy->stride(-1);
    return copy->const_data_ptr();
  }

  ContractionSpec spec(std::span<const int64_t> symbols) const {
    const ir::TensorType& a = operands_[static_cast<size_t>(product_.a)];
    const ir::TensorType& b = operands_[static_cast<size_t>(product_.b)];
    const size_t rank = type_.sizes.size();
    ContractionSpec spec;
    spec.dtype = a.dtype;
    spec.out_dtype = type_.dtype;
    for (size_t i = 0; i + 2 < rank; ++i) spec.batch.push_back(type_.sizes[i].eval(symbols));
    spec.m = type_.sizes[rank - 2].eval(symbols);
    spec.n = type_.sizes[rank - 1].eval(symbols);
    spec.k = a.sizes.back().eval(symbols);
    spec.a = layout_of(a, symbols);
    spec.b = layout_of(b, symbols);
    spec.c = layout_of(type_, symbols);
    spec.post = post_;
    spec.remember_b = copies_ != nullptr;
    if (product_.bias >= 0) spec.bias = operands_[static_cast<size_t>(product_.bias)].dtype;
    return spec;
  }

  const Product product_;
  const std::vector<ir::TensorType> operands_;
  const ir::TensorType type_;
  const ResultLayout result_;
  std::vector<ir::Sym> offsets_;
  std::vector<PostOp> post_;
  bool is_static_ = false, is_usable_ = false;
  std::shared_ptr<const Contraction> contraction_;
  std::unique_ptr<WeightCopies> copies_;  // of b; null: it may not be remembered
};

}  // namespace

bool is_contraction(const ir::Node& node) {
  const Product* product = find_product(node);
  if (!product || !node.outputs[0] || !node.outputs[0]->device.is_cpu()) return false;
  const ir::DType dtype = node.outputs[0]->dtype;
  if (dtype != ir::DType::float32 && dtype != ir::DType::bfloat16) return false;
  for (const ir::Arg& arg : node.args)
    if (arg.value() && ir::type_of(*arg.value()).dtype != dtype) return false;
  if (product->bias < 0) return true;
  const auto at = [&](int i) -> const ir::Arg& { return node.args[static_cast<size_t>(i)]; };
  return is_bias(ir::type_of(*at(product->bias).value()), *node.outputs[0]) && ir::is_number(at(product->beta), 1) &&
         ir::is_number(at(product->alpha), 1);
}

std::unique_ptr<reference::NativeCall> make_contraction_call(const NativeOperation& operation,
                                                             const NativeOptions& options) {
  auto call = std::make_unique<ContractionCall>(operation, *find_product(*operation.node), options);
  if (!call->usable()) return nullptr;
  return call;
}

}  // namespace graphlift::cpu
