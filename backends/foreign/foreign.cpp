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

// The program's own calls: its tensors go in as they are, and come out with their history.
class ForeignCalls final : public backend::CompiledCalls {
 public:
  ForeignCalls(Ref program, const Ref& description)
      : program_(std::move(program)),
        calls_(static_cast<size_t>(PyList_GET_SIZE(PyTuple_GET_ITEM(description.get(), 0)))),
        inputs_(numbers("inputs")),
        symbols_(numbers("symbols")) {}

  bool run(PyObject* const* inputs, const int64_t* symbols, PyObject** outputs) const override {
    cpython::HookScope nobody(nullptr);
    Ref tensors = checked(PyList_New(static_cast<Py_ssize_t>(inputs_.size())));
    Ref numbers = checked(PyList_New(static_cast<Py_ssize_t>(symbols_.size())));
    for (size_t i = 0; i < inputs_.size(); ++i)
      PyList_SET_ITEM(tensors.get(), static_cast<Py_ssize_t>(i), Py_NewRef(inputs[inputs_[i]]));
    for (size_t i = 0; i < symbols_.size(); ++i)
      PyList_SET_ITEM(numbers.get(), static_cast<Py_ssize_t>(i),
                      checked(PyLong_FromLongLong(symbols[symbols_[i]])).release());
    const Ref results = Ref::steal(PyObject_CallFunctionObjArgs(program_.get(), tensors.get(), numbers.get(), nullptr));
    if (!results && raised_by_program()) return false;
    if (!results) throw_python_error();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results.get()); ++i)
      outputs[i] = Py_NewRef(PyList_GET_ITEM(results.get(), i));
    return true;
  }
  std::string text() const override {
    const Ref text = Ref::steal(PyObject_CallMethod(program_.get(), "text", nullptr));
    const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    PyErr_Clear();
    return words ? words : "";
  }
  size_t call_count() const override { return calls_; }

 private:
  // The pending exception came out of one of the program's own calls, made by the module itself.
  bool raised_by_program() const {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    const Ref answer = Ref::steal(PyObject_CallMethod(program_.get(), "raised_by_program", "O", value));
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return answer.get() == Py_True;
  }

  std::vector<size_t> numbers(const char* attribute) const {
    const Ref list = checked(PyObject_GetAttrString(program_.get(), attribute));
    std::vector<size_t> values;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
      values.push_back(PyLong_AsSize_t(PyList_GET_ITEM(list.get(), i)));
    return values;
  }

  Held program_;
  size_t calls_;
  std::vector<size_t> inputs_, symbols_;  // primals and symbols that the module takes
};

class Foreign final : public backend::Backend {
 public:
  Foreign(PyObject* compile, bool calls) : compile_(Ref::borrow(compile)), calls_(calls) {}
  std::string name() const override { return "foreign"; }
  bool supports(ir::Device) const override { return true; }
  bool wants_calls() const override { return calls_; }
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

  std::unique_ptr<backend::CompiledCalls> compile_calls(const Ref& description) const override {
    cpython::HookScope nobody(nullptr);
    const Ref module = checked(PyImport_ImportModule("graphlift.foreign_calls"));
    Ref program = checked(PyObject_CallMethod(module.get(), "CallProgram", "OO", compile_.get(), description.get()));
    return std::make_unique<ForeignCalls>(std::move(program), description);
  }

 private:
  Held compile_;
  bool calls_;
};

}  // namespace

std::shared_ptr<const backend::Backend> make_foreign_backend(PyObject* compile, bool calls) {
  return std::make_shared<Foreign>(compile, calls);
}

}  // namespace graphlift::foreign
