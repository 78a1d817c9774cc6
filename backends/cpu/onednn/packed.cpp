// Owns: the contraction that reads a kept copy of B, in the layout that oneDNN's kernel likes.
#include "backends/cpu/onednn.h"
#include "backends/cpu/onednn/matmul.h"
#include "base/text.h"

namespace graphlift::cpu {
namespace onednn {
namespace {

class PackedMatmul final : public Contraction {
 public:
  PackedMatmul(const ContractionSpec& spec, std::unique_ptr<const Contraction> plain,
               std::unique_ptr<const Primitive> packed)
      : spec_(spec), plain_(std::move(plain)), packed_(std::move(packed)) {}

  void run(const ContractionOperands& operands) const override {
    const Variant& variant = packed_->variant();
    WeightCopies::Copy copy;
    if (operands.copies && variant.form())
      copy = operands.copies->find(*operands.b_tensor, operands.b, variant.form(),
                                   [&] { return variant.copy(operands.b); });
    if (!copy) return plain_->run(operands);
    run_matmul(spec_, operands, copy->data(), [&](void* const* addresses) { variant.run_with_copy(addresses); });
  }
  std::string implementation() const override {
    return cat("onednn packed ", packed_->variant().implementation(), ", or ", plain_->implementation());
  }

 private:
  const ContractionSpec spec_;
  const std::unique_ptr<const Contraction> plain_;
  const std::unique_ptr<const Primitive> packed_;
};

}  // namespace
}  // namespace onednn

std::unique_ptr<const Contraction> make_onednn_packed(const ContractionSpec& spec,
                                                      std::unique_ptr<const Contraction> plain, std::string* why) {
  if (!spec.remember_b || !spec.batch.empty()) {
    if (why) *why = "B may not be remembered, or has batch dimensions";
    return nullptr;
  }
  auto packed = onednn::make_matmul(spec, onednn::WeightLayout::Packed, why);
  if (!packed) return nullptr;
  if (!packed->variant().form()) {
    if (why) *why = "oneDNN likes B as it lies";
    return nullptr;
  }
  return std::make_unique<onednn::PackedMatmul>(spec, std::move(plain), std::move(packed));
}

bool onednn_packs_in_blocks() {
  static const bool blocks = [] {
    ContractionSpec spec;
    spec.m = 16, spec.n = spec.k = 256;
    spec.a = spec.b = spec.c = {{}, 256, 1};
    const auto packed = onednn::make_matmul(spec, onednn::WeightLayout::Packed, nullptr);
    return packed && packed->variant().form() != 0;
  }();
  return blocks;
}

}  // namespace graphlift::cpu
