// Owns: see foreign.h.
#include "backends/foreign/foreign.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <vector>

#include "backends/foreign/describe.h"
#include "base/gil.h"
#include "cpython/hook.h"

namespace graphlift::foreign {
namespace {

// An object that is dropped with the GIL, wherever its owner dies.
class Held {
 public:
  explicit Held(Ref object) : object_(std::move(object)) {}
  ~Held() {
    if (!Py_IsInitialized()) {
      object_.release();  // the interpreter ended, and its objects with it
      return;
    }
    WithGil gil;
    object_.reset();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  PyObject* get() const { return object_.get(); }

 private:
  Ref object_;
};

[[noreturn]] void throw_python_error() {
  python_error error;
  error.persist();
  throw error;
}

Ref checked(PyObject* made) {
  if (!made) throw_python_error();
  return Ref::steal(made);
}

Ref wrapped(at::Tensor&& tensor) {
  if (!tensor.defined()) return Ref::borrow(Py_None);
  return checked(THPVariable_Wrap(std::move(tensor)));
}

// The region was entered below autograd; the program's own code runs as under torch.no_grad().
c10::impl::LocalDispatchKeySet keys_of_no_grad() {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  return keys;
}

class ForeignGraph final : public backend::CompiledGraph {
 public:
  ForeignGraph(Ref program, size_t inputs, size_t symbols, size_t outputs)
      : program_(std::move(program)), inputs_(inputs), symbols_(symbols), outputs_(outputs) {}

  void run(at::Tensor* inputs, const int64_t* symbols, at::Tensor* outputs) const override {
    WithGil gil;
    cpython::HookScope nobody(nullptr);  // what the program's backend does is no part of the compiled function
    c10::impl::ForceDispatchKeyGuard as_under_no_grad(keys_of_no_grad());
    Ref tensors = checked(PyList_New(static_cast<Py_ssize_t>(inputs_)));
    Ref numbers = checked(PyList_New(static_cast<Py_ssize_t>(symbols_)));
    std::vector<c10::TensorImpl*> given;
    for (size_t i = 0; i < inputs_; ++i) {
      given.push_back(inputs[i].unsafeGetTensorImpl());
      PyList_SET_ITEM(tensors.get(), static_cast<Py_ssize_t>(i), wrapped(std::move(inputs[i])).release());
    }
    for (size_t i = 0; i < symbols_; ++i)
      PyList_SET_ITEM(numbers.get(), static_cast<Py_ssize_t>(i), checked(PyLong_FromLongLong(symbols[i])).release());
    const Ref results = checked(PyObject_CallFunctionObjArgs(program_.get(), tensors.get(), numbers.get(), nullptr));
    for (size_t i = 0; i < outputs_; ++i) {
      PyObject* result = PyList_GET_ITEM(results.get(), static_cast<Py_ssize_t>(i));
      if (result != Py_None) outputs[i] = own(THPVariable_Unpack(result), given);
    }
  }

 private:
  // A result becomes a tensor without history that is nobody else's object.
  static at::Tensor own(const at::Tensor& result, const std::vector<c10::TensorImpl*>& given) {
    const bool is_input = std::find(given.begin(), given.end(), result.unsafeGetTensorImpl()) != given.end();
    return is_input || result.requires_grad() ? result.detach() : result;
  }

  Held program_;
  size_t inputs_, symbols_, outputs_;
};

class Foreign final : public backend::Backend {
 public:
  explicit Foreign(PyObject* compile) : compile_(Ref::borrow(compile)) {}
  std::string name() const override { return "foreign"; }
  bool supports(ir::Device) const override { return true; }
  std::string fingerprint() const override { return ""; }  // nothing is known of it: its results can't be cached

  std::unique_ptr<backend::CompiledGraph> compile(const ir::Graph& graph, const std::vector<at::Tensor>& constants,
                                                  const backend::Options&) const override {
    WithGil gil;
    cpython::HookScope nobody(nullptr);
    Ref tensors = checked(PyList_New(0));
    for (const at::Tensor& constant : constants)
      if (PyList_Append(tensors.get(), wrapped(at::Tensor(constant)).get()) < 0) throw_python_error();
    const Ref description = describe(graph);
    const Ref module = checked(PyImport_ImportModule("graphlift.foreign"));
    Ref program =
        checked(PyObject_CallMethod(module.get(), "Program", "OOO", compile_.get(), description.get(), tensors.get()));
    return std::make_unique<ForeignGraph>(std::move(program), graph.inputs().size(), ir::symbol_count(graph),
                                          graph.outputs().size());
  }

 private:
  Held compile_;
};

}  // namespace

std::shared_ptr<const backend::Backend> make_foreign_backend(PyObject* compile) {
  return std::make_shared<Foreign>(compile);
}

}  // namespace graphlift::foreign
