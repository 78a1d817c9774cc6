// Owns: the cache of packed matrices, and the contraction that uses it.
#include "backends/cpu/onednn/packed_weights.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "backends/cpu/onednn.h"
#include "backends/cpu/onednn/matmul.h"
#include "base/error.h"
#include "base/text.h"

namespace graphlift::cpu {
namespace onednn {
namespace {

PackedWeights::Packed pack(const void* b, const_dnnl_memory_desc_t plain, const_dnnl_memory_desc_t wanted) {
  auto out = std::make_shared<AlignedBuffer>(library()->dnnl_memory_desc_get_size(wanted));
  PrimitiveDesc desc = describe_reorder(plain, wanted);
  GL_CHECK(desc, "oneDNN reorders no such memory");
  const Variant reorder(std::move(desc), {{DNNL_ARG_FROM}, {DNNL_ARG_TO}}, 0);
  void* const addresses[] = {const_cast<void*>(b), out->data()};
  reorder.run(addresses);
  return out;
}

}  // namespace

PackedWeights::Entry* PackedWeights::entry_of(const c10::StorageImpl* storage, const void* data,
                                              const Variant& variant) const {
  for (Entry& it : entries_)
    if (it.storage._unsafe_get_target() == storage && it.data == data && it.variant == &variant) return &it;
  return nullptr;
}

PackedWeights::Packed PackedWeights::find(const at::Tensor& owner, const void* b, const_dnnl_memory_desc_t plain,
                                          const Variant& variant) const {
  if (owner.is_inference()) return nullptr;  // has no version
  const auto version = static_cast<uint32_t>(owner._version());
  const c10::Storage& storage = owner.storage();
  const std::lock_guard lock(mutex_);
  Entry* entry = entry_of(storage.unsafeGetStorageImpl(), b, variant);
  if (!entry) {
    std::erase_if(entries_, [](const Entry& it) { return it.storage.expired(); });
    entries_.push_back({storage.getWeakStorageImpl(), b, version, &variant, {}});
    return nullptr;
  }
  if (entry->version != version) {
    entry->version = version;
    entry->packed = nullptr;
    return nullptr;
  }
  if (!entry->packed) entry->packed = pack(b, plain, variant.argument_desc(DNNL_ARG_WEIGHTS));
  return entry->packed;
}

namespace {

class PackedMatmul final : public Contraction {
 public:
  PackedMatmul(const ContractionSpec& spec, std::unique_ptr<const Primitive> plain,
               std::unique_ptr<const Primitive> packed)
      : spec_(spec), plain_(std::move(plain)), packed_(std::move(packed)), plain_b_(weight_desc(spec)) {}

  void run(const ContractionOperands& operands) const override {
    PackedWeights::Packed packed;
    if (operands.b_tensor) packed = weights_.find(*operands.b_tensor, operands.b, plain_b_.get(), packed_->variant());
    if (packed)
      run_matmul(*packed_, spec_, operands, packed->data());
    else
      run_matmul(*plain_, spec_, operands, operands.b);
  }
  std::string implementation() const override { return cat("onednn packed ", packed_->variant().implementation()); }

 private:
  const ContractionSpec spec_;
  const std::unique_ptr<const Primitive> plain_;
  const std::unique_ptr<const Primitive> packed_;
  const MemoryDesc plain_b_;
  const PackedWeights weights_;
};

}  // namespace
}  // namespace onednn

std::unique_ptr<const Contraction> make_onednn_packed(const ContractionSpec& spec, std::string* why) {
  if (!spec.remember_b || !spec.batch.empty()) {
    if (why) *why = "B may not be remembered, or has batch dimensions";
    return nullptr;
  }
  auto plain = onednn::make_matmul(spec, onednn::WeightLayout::Plain, why);
  auto packed = plain ? onednn::make_matmul(spec, onednn::WeightLayout::Packed, why) : nullptr;
  if (!packed) return nullptr;
  return std::make_unique<onednn::PackedMatmul>(spec, std::move(plain), std::move(packed));
}

}  // namespace graphlift::cpu
