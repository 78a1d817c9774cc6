#include "torch/tensor_check.h"

#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string>
#include <vector>

#include "torch/convert.h"

namespace graphlift::torch_layer {
namespace {

using torch::autograd::AutogradMeta;

const AutogradMeta* history_of(const c10::TensorImpl& impl) {
  return static_cast<const AutogradMeta*>(impl.autograd_meta());
}

bool needs_gradient(const AutogradMeta* history) { return history && history->requires_grad(); }
bool is_leaf(const AutogradMeta* history) { return !history || !history->grad_fn_; }
bool has_tangent(const AutogradMeta* history) { return history && history->fw_grad_ && !history->fw_grad_->empty(); }

class TensorCheck final : public guards::LeafCheck {
 public:
  explicit TensorCheck(std::shared_ptr<const PrimalFacts> facts) : facts_(std::move(facts)) {
    const ir::TensorType& type = facts_->tensor;
    meta_ = c10::scalarTypeToTypeMeta(to_torch(type.dtype));
    requires_grad_ = type.requires_grad;
    for (int d = 0; d < type.rank(); ++d) {
      const ir::Sym& size = type.sizes[d];
      sizes_.push_back(size.is_constant() ? size.constant() : kSymbolic);
      const ir::Sym& stride = type.strides[d];
      strides_.push_back(stride.is_constant() ? stride.constant() : kSymbolic);
      if (!size.is_constant()) {
        std::vector<ir::SymbolId> ids;
        size.collect(&ids);
        binds_.push_back({d, ids.at(0)});
        symbol_limit_ = std::max(symbol_limit_, static_cast<size_t>(ids[0]) + 1);
      }
      if (!stride.is_constant()) computed_.push_back(d);
    }
  }

  bool check(PyObject* object, int64_t* symbols) const override {
    if (Py_TYPE(object) != reinterpret_cast<PyTypeObject*>(facts_->type.get())) return false;
    const c10::TensorImpl& impl = *THPVariable_Unpack(object).unsafeGetTensorImpl();
    if (impl.key_set() != facts_->keys || impl.dtype() != meta_ || impl.device() != facts_->device) return false;
    const AutogradMeta* const history = history_of(impl);
    if (needs_gradient(history) != requires_grad_) return false;
    if (requires_grad_ && is_leaf(history) != facts_->leaf) return false;
    if (has_tangent(history)) return false;
    if (facts_->offset_matters && impl.storage_offset() != facts_->offset) return false;
    auto sizes = impl.sizes();
    auto strides = impl.strides();
    if (sizes.size() != sizes_.size()) return false;
    for (size_t d = 0; d < sizes_.size(); ++d) {
      if (sizes_[d] != kSymbolic ? sizes_[d] != sizes[d] : sizes[d] < 1) return false;
      if (strides_[d] != kSymbolic && strides_[d] != strides[d] && sizes_[d] != 1) return false;
    }
    for (const Bind& bind : binds_) symbols[bind.symbol] = sizes[bind.dim];
    if (computed_.empty()) return true;
    return strides_follow(strides, symbols);
  }

  std::string text(const std::string& origin) const override {
    std::string words = "tensor " + origin + " is " + facts_->tensor.str();
    if (facts_->tensor.requires_grad) words += facts_->leaf ? ", requires grad" : ", requires grad through grad_fn";
    if (facts_->offset_matters) words += ", offset " + std::to_string(facts_->offset);
    return words;
  }

  std::string explain(PyObject* object) const override;

 private:
  static constexpr int64_t kSymbolic = -1;
  struct Bind {
    int dim;
    ir::SymbolId symbol;
  };

  // Strides are made of the tensor's own sizes only, which are bound by now. Those of a dim that varies hold where it
  // is 1 long, too: the strides of views and results are computed from them.
  bool strides_follow(c10::IntArrayRef strides, const int64_t* symbols) const {
    for (int d : computed_) {
      const ir::Sym& stride = facts_->tensor.strides[static_cast<size_t>(d)];
      if (stride.eval({symbols, symbol_limit_}) != strides[static_cast<size_t>(d)]) return false;
    }
    return true;
  }

  // A check reads few lines of memory: most of its time is waiting for them.
  std::shared_ptr<const PrimalFacts> facts_;
  caffe2::TypeMeta meta_;
  bool requires_grad_ = false;
  c10::SmallVector<int64_t, 4> sizes_, strides_;
  std::vector<Bind> binds_;
  std::vector<int> computed_;
  size_t symbol_limit_ = 0;
};

std::string differs(const std::string& what, const std::string& is, const std::string& was) {
  return what + " is " + is + ", not " + was;
}

const char* yes_no(bool value) { return value ? "True" : "False"; }

std::string TensorCheck::explain(PyObject* object) const {
  auto* expected = reinterpret_cast<PyTypeObject*>(facts_->type.get());
  if (Py_TYPE(object) != expected) return differs("type", Py_TYPE(object)->tp_name, expected->tp_name);
  c10::TensorImpl& impl = *THPVariable_Unpack(object).unsafeGetTensorImpl();
  const ir::TensorType& type = facts_->tensor;
  if (impl.dtype() != meta_)
    return differs("dtype", c10::toString(c10::typeMetaToScalarType(impl.dtype())),
                   c10::toString(to_torch(type.dtype)));
  if (impl.device() != facts_->device) return differs("device", impl.device().str(), facts_->device.str());
  if (impl.is_inference() != !facts_->keys.has_any(c10::inplace_or_view_ks))
    return differs("is_inference()", yes_no(impl.is_inference()), yes_no(!impl.is_inference()));
  if (impl.key_set() != facts_->keys)
    return differs("kind of tensor", c10::toString(impl.key_set()), c10::toString(facts_->keys));
  if (needs_gradient(history_of(impl)) != type.requires_grad)
    return differs("requires_grad", yes_no(!type.requires_grad), yes_no(type.requires_grad));
  if (type.requires_grad && is_leaf(history_of(impl)) != facts_->leaf)
    return differs("is_leaf", yes_no(!facts_->leaf), yes_no(facts_->leaf));
  if (has_tangent(history_of(impl))) return "has a forward-mode gradient";
  auto sizes = impl.sizes();
  auto strides = impl.strides();
  if (sizes.size() != sizes_.size())
    return differs("number of dimensions", std::to_string(sizes.size()), std::to_string(sizes_.size()));
  for (size_t d = 0; d < sizes_.size(); ++d) {
    std::string dim = " of dimension " + std::to_string(d);
    if (sizes_[d] != kSymbolic ? sizes_[d] != sizes[d] : sizes[d] < 1)
      return differs("size" + dim, std::to_string(sizes[d]), sizes_[d] != kSymbolic ? type.sizes[d].str() : "over 0");
    if (strides_[d] != kSymbolic && strides_[d] != strides[d] && sizes_[d] != 1)
      return differs("stride" + dim, std::to_string(strides[d]), std::to_string(strides_[d]));
  }
  if (facts_->offset_matters && impl.storage_offset() != facts_->offset)
    return differs("storage_offset()", std::to_string(impl.storage_offset()), std::to_string(facts_->offset));
  return "its strides don't follow from its sizes as before";
}

}  // namespace

std::shared_ptr<PrimalFacts> make_facts(PyObject* object, const at::Tensor& real, const ir::TensorType& type) {
  auto facts = std::make_shared<PrimalFacts>();
  facts->type = Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  facts->keys = real.key_set();
  facts->device = real.device();
  facts->tensor = type;
  facts->offset = real.storage_offset();
  facts->leaf = real.is_leaf();
  return facts;
}

std::unique_ptr<guards::LeafCheck> make_tensor_check(std::shared_ptr<const PrimalFacts> facts) {
  return std::make_unique<TensorCheck>(std::move(facts));
}

}  // namespace graphlift::torch_layer
