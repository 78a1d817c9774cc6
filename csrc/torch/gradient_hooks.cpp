// Owns: see gradient_hooks.h.
#include "torch/gradient_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string>
#include <utility>

#include "torch/tracer.h"

namespace graphlift::torch_layer {
namespace {

namespace impl = torch::autograd::impl;

// How many lists of hooks the dict stands for: one, or none when there is no dict.
size_t add_hooks(PyObject* tensor, const char* attribute, std::vector<Ref>* hooks, std::vector<Ref>* dicts) {
  Ref dict = Ref::steal(PyObject_GetAttrString(tensor, attribute));
  if (!dict) PyErr_Clear();
  if (!dict || !PyDict_Check(dict.get())) return 0;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict.get(), &at, &key, &value);) hooks->push_back(Ref::borrow(value));
  dicts->push_back(std::move(dict));
  return 1;
}

bool accumulator_has_hooks(const at::Tensor& tensor) {
  const auto accumulator = impl::try_get_grad_accumulator(tensor);
  return accumulator && (!accumulator->pre_hooks().empty() || !accumulator->post_hooks().empty() ||
                         !accumulator->retains_grad_hooks().empty());
}

bool has_none(const at::Tensor& tensor) {
  return !impl::get_autograd_meta(tensor) ||
         (impl::hooks(tensor).empty() && !impl::post_acc_grad_hooks(tensor) && !accumulator_has_hooks(tensor));
}

bool same_objects(const std::vector<Ref>& a, const std::vector<Ref>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Ref& x, const Ref& y) { return x.get() == y.get(); });
}

class SameHooks final : public guards::LeafCheck {
 public:
  explicit SameHooks(GradientHooks hooks) : expected_(std::move(hooks)) {}
  bool check(PyObject* object, int64_t*) const override {
    if (!is_tensor(object)) return false;
    if (has_none(THPVariable_Unpack(object))) return !expected_.any();
    const GradientHooks now = gradient_hooks(object);
    return !now.others && same_objects(now.before, expected_.before) && same_objects(now.after, expected_.after);
  }
  std::string text(const std::string& origin) const override { return "the hooks on the gradient of " + origin; }
  std::string explain(PyObject*) const override { return "has other hooks on its gradient"; }

 private:
  GradientHooks expected_;
};

}  // namespace

GradientHooks gradient_hooks(PyObject* object) {
  GradientHooks hooks;
  const at::Tensor& tensor = THPVariable_Unpack(object);
  if (has_none(tensor)) return hooks;
  const size_t before = add_hooks(object, "_backward_hooks", &hooks.before, &hooks.dicts);
  const size_t after = add_hooks(object, "_post_accumulate_grad_hooks", &hooks.after, &hooks.dicts);
  hooks.others = impl::hooks(tensor).size() > before || (impl::post_acc_grad_hooks(tensor) && after == 0) ||
                 accumulator_has_hooks(tensor);
  return hooks;
}

std::unique_ptr<guards::LeafCheck> gradient_hooks_check(GradientHooks hooks) {
  return std::make_unique<SameHooks>(std::move(hooks));
}

}  // namespace graphlift::torch_layer
