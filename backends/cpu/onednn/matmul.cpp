// Owns: specs as memory descriptions, the plain implementation.
#include "backends/cpu/onednn/matmul.h"

#include "backends/cpu/onednn.h"
#include "backends/cpu/onednn/attributes.h"
#include "base/text.h"

namespace graphlift::cpu {
namespace onednn {
namespace {

// oneDNN has no broadcast by stride 0: such a batch dimension has size 1.
MemoryDesc matrix_desc(const ContractionSpec& spec, const MatrixLayout& layout, int64_t rows, int64_t columns,
                       ir::DType dtype) {
  std::vector<int64_t> sizes, strides;
  for (size_t i = 0; i < spec.batch.size(); ++i) {
    const bool broadcast = layout.batch[i] == 0;
    sizes.push_back(broadcast ? 1 : spec.batch[i]);
    strides.push_back(broadcast ? rows * columns : layout.batch[i]);
  }
  sizes.insert(sizes.end(), {rows, columns});
  strides.insert(strides.end(), {layout.row, layout.column});
  return strided_desc(sizes, strides, data_type(dtype));
}

MemoryDesc bias_desc(const ContractionSpec& spec) {
  std::vector<int64_t> sizes(spec.batch.size() + 2, 1), strides(spec.batch.size() + 2, spec.n);
  sizes.back() = spec.n;
  strides.back() = 1;
  return strided_desc(sizes, strides, data_type(spec.bias));
}

PrimitiveDesc describe(const ContractionSpec& spec, WeightLayout layout) {
  std::vector<int64_t> sizes = spec.batch;
  sizes.insert(sizes.end(), {spec.m, spec.n});
  const MemoryDesc a = matrix_desc(spec, spec.a, spec.m, spec.k, spec.dtype);
  const MemoryDesc b =
      layout == WeightLayout::Plain ? weight_desc(spec) : any_layout_desc({spec.k, spec.n}, data_type(spec.dtype));
  const MemoryDesc c = matrix_desc(spec, spec.c, spec.m, spec.n, spec.out_dtype);
  const MemoryDesc bias = spec.bias == ir::DType::undefined ? nullptr : bias_desc(spec);
  const Attributes attributes = post_op_attributes(spec.post, sizes);
  if (!a || !b || !c || !attributes) return nullptr;
  dnnl_primitive_desc_t out = nullptr;
  library()->dnnl_matmul_primitive_desc_create(&out, library()->engine, a.get(), b.get(), bias.get(), c.get(),
                                               attributes.get());
  return unless_reference(PrimitiveDesc(out));
}

class PlainMatmul final : public Contraction {
 public:
  PlainMatmul(const ContractionSpec& spec, std::unique_ptr<const Primitive> primitive)
      : spec_(spec), primitive_(std::move(primitive)) {}
  void run(const ContractionOperands& operands) const override {
    run_matmul(spec_, operands, operands.b, [&](void* const* addresses) { primitive_->run(addresses); });
  }
  std::string implementation() const override { return cat("onednn ", primitive_->variant().implementation()); }

 private:
  const ContractionSpec spec_;
  const std::unique_ptr<const Primitive> primitive_;
};

}  // namespace

MemoryDesc weight_desc(const ContractionSpec& spec) { return matrix_desc(spec, spec.b, spec.k, spec.n, spec.dtype); }

std::unique_ptr<const Primitive> make_matmul(const ContractionSpec& spec, WeightLayout layout, std::string* why) {
  if (!library(why)) return nullptr;
  if (spec.k == 0) {
    if (why) *why = "the sum has no terms";
    return nullptr;
  }
  std::vector<Argument> arguments = {{DNNL_ARG_SRC}, {DNNL_ARG_WEIGHTS}, {DNNL_ARG_DST}};
  if (layout == WeightLayout::Packed) arguments[1] = {DNNL_ARG_WEIGHTS, Flow::In, weight_desc(spec), true};
  if (spec.bias != ir::DType::undefined) arguments.push_back({DNNL_ARG_BIAS});
  for (int it : post_op_arguments(spec.post)) arguments.push_back({it});
  auto out = Primitive::make([spec, layout] { return describe(spec, layout); }, std::move(arguments));
  if (!out && why) *why = cat("oneDNN has no fast kernel for ", spec.str());
  return out;
}

}  // namespace onednn

std::unique_ptr<const Contraction> make_onednn_contraction(const ContractionSpec& spec, std::string* why) {
  auto primitive = onednn::make_matmul(spec, onednn::WeightLayout::Plain, why);
  if (!primitive) return nullptr;
  return std::make_unique<onednn::PlainMatmul>(spec, std::move(primitive));
}

}  // namespace graphlift::cpu
