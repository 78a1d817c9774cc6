// Owns: see program_calls.h; the mode, and which calls become nodes.
#include "torch/program_calls.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/SafePyObject.h>
#include <torch/csrc/PyInterpreter.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/once.h"
#include "torch/objects.h"
#include "torch/tracer.h"

namespace graphlift::torch_layer {
namespace {

using at::impl::PythonTorchFunctionTLS;

struct ModeObject {
  PyObject_HEAD ProgramCalls* calls;  // null once the recording is over
};

// __torch_function__(func, types, args=(), kwargs=None): torch took the mode off its stack.
PyObject* mode_call(PyObject* self, PyObject* given) {
  PyObject *function, *types, *args = nullptr, *kwargs = nullptr;
  if (!PyArg_UnpackTuple(given, "__torch_function__", 2, 4, &function, &types, &args, &kwargs)) return nullptr;
  const Ref none = Ref::steal(PyTuple_New(0));
  if (!args) args = none.get();
  if (kwargs == Py_None) kwargs = nullptr;
  auto body = [&] { return Ref::steal(PyObject_Call(function, args, kwargs)); };
  ProgramCalls* calls = reinterpret_cast<ModeObject*>(self)->calls;
  return (calls ? calls->call(function, args, kwargs, body) : body()).release();
}

PyTypeObject* mode_type() {
  static PyMethodDef methods[] = {{"__torch_function__", mode_call, METH_VARARGS, nullptr}, {}};
  static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
  static PyType_Spec spec{"graphlift.ProgramCalls", sizeof(ModeObject), 0, Py_TPFLAGS_DEFAULT, slots};
  static constinit Once<PyTypeObject*> once;
  return once.get([] { return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec)); });
}

PyObject* mode_at(int64_t index) { return PythonTorchFunctionTLS::get_stack_at(index)->ptr(getPyInterpreter()); }

// In scope, the innermost mode is off.
class InnermostOff {
 public:
  InnermostOff() : mode_(PythonTorchFunctionTLS::pop_stack()) {}
  ~InnermostOff() { PythonTorchFunctionTLS::push_onto_stack(mode_); }
  InnermostOff(const InnermostOff&) = delete;
  InnermostOff& operator=(const InnermostOff&) = delete;

 private:
  std::shared_ptr<c10::SafePyObject> mode_;
};

// Calls that change a tensor without any operator, or what happens to its gradient.
constexpr std::string_view kActs[] = {
    "__set__", "__delete__", "register_hook", "register_post_accumulate_grad_hook", "backward", "requires_grad_"};

}  // namespace

bool acts_silently(PyObject* function) {
  const Ref name = Ref::steal(PyObject_GetAttrString(function, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  return text && std::find(std::begin(kActs), std::end(kActs), std::string_view(text)) != std::end(kActs);
}

namespace {

bool holds_tensor(PyObject* object) {
  if (is_tensor(object)) return true;
  if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (holds_tensor(PySequence_Fast_GET_ITEM(object, i))) return true;
  return false;
}

}  // namespace

long program_function_modes() {
  long count = 0;
  for (int64_t i = 0; i < PythonTorchFunctionTLS::stack_len(); ++i) count += !Py_IS_TYPE(mode_at(i), mode_type());
  return count;
}

ProgramCalls::ProgramCalls(const Tracer& tracer, Stack stack)
    : tracer_(tracer), stack_(std::move(stack)), nodes_(Ref::steal(PyList_New(0))) {
  PyTypeObject* type = mode_type();
  mode_ = type ? Ref::steal(type->tp_alloc(type, 0)) : Ref();
  GL_CHECK(mode_ && nodes_, "no memory for the mode that sees calls");
  reinterpret_cast<ModeObject*>(mode_.get())->calls = this;
}

ProgramCalls::~ProgramCalls() { reinterpret_cast<ModeObject*>(mode_.get())->calls = nullptr; }

void ProgramCalls::push() {
  // Recording goes on inside of a call: the mode stays off, as it was.
  const bool was_on = pushed_.empty() || pushed_.back();
  if (!pushed_.empty()) pushed_.pop_back();
  if (was_on)
    PythonTorchFunctionTLS::push_onto_stack(
        std::make_shared<c10::SafePyObject>(Py_NewRef(mode_.get()), getPyInterpreter()));
}

void ProgramCalls::pop() {
  std::vector<std::shared_ptr<c10::SafePyObject>> above;
  bool found = false;
  while (!found && PythonTorchFunctionTLS::stack_len() > 0) {
    auto top = PythonTorchFunctionTLS::pop_stack();
    found = top->ptr(getPyInterpreter()) == mode_.get();
    if (!found) above.push_back(std::move(top));
  }
  for (auto mode = above.rbegin(); mode != above.rend(); ++mode) PythonTorchFunctionTLS::push_onto_stack(*mode);
  pushed_.push_back(found);
}

bool ProgramCalls::watching() const {
  const int64_t depth = PythonTorchFunctionTLS::stack_len();
  return depth > 0 && mode_at(depth - 1) == mode_.get() && at::impl::torch_function_mode_enabled();
}

Ref ProgramCalls::hidden(const Body& body) {
  if (!watching()) return body();
  InnermostOff off;
  return body();
}

Ref ProgramCalls::call(PyObject* function, PyObject* args, PyObject* kwargs, const Body& body) {
  if (open_ > 0) return hidden(body);
  const size_t before = tracer_.call_count();
  ++open_;
  Ref result = hidden(body);
  --open_;
  const bool acted = tracer_.call_count() != before;
  if (!result && acted) refuse("a call that acted raises");
  if (!result || !refused_.empty()) return result;
  if (is_recorded(function, result.get(), acted)) record(function, args, kwargs, result.get());
  return result;
}

bool ProgramCalls::is_recorded(PyObject* function, PyObject* result, bool acted) {
  return acted || holds_tensor(result) || acts_silently(function);
}

void ProgramCalls::note(PyObject* function, const std::vector<Ref>& args) {
  if (open_ > 0) return;
  const Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(args.size())));
  for (size_t i = 0; tuple && i < args.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Py_NewRef(args[i].get()));
  if (tuple) record(function, tuple.get(), nullptr, Py_None);
}

void ProgramCalls::add(PyObject* function, PyObject* args, PyObject* result) {
  record(function, args, nullptr, result);
}

void ProgramCalls::operator_runs(const char* name) {
  if (open_ == 0) refuse(std::string(name) + " runs outside of any function of torch's");
}

void ProgramCalls::refuse(const std::string& why) {
  if (refused_.empty()) refused_ = why;
}

void ProgramCalls::record(PyObject* function, PyObject* args, PyObject* kwargs, PyObject* result) {
  if (!refused_.empty()) return;
  SavedError error;
  const Ref encoded = encode(args);
  const Ref named = encoded && kwargs ? encode_dict(kwargs) : Ref::borrow(Py_None);
  if (encoded && named) {
    std::vector<long> path;
    const Ref made = describe_result(result, static_cast<long>(PyList_GET_SIZE(nodes_.get())), &path);
    const Ref stack = stack_now();
    const Ref node = made && stack
                         ? Ref::steal(PyTuple_Pack(5, function, encoded.get(), named.get(), made.get(), stack.get()))
                         : Ref();
    if (node && PyList_Append(nodes_.get(), node.get()) == 0) return;
  }
  PyErr_Clear();
  refuse("a call could not be written down");
}

Ref ProgramCalls::finish(std::span<PyObject* const> outputs) {
  Ref results = Ref::steal(PyList_New(0));
  for (PyObject* output : outputs) {
    const Ref reference = refused_.empty() ? encode_tensor(output) : Ref();
    if (!reference || PyList_Append(results.get(), reference.get()) < 0) return {};
  }
  return refused_.empty() ? Ref::steal(PyTuple_Pack(2, nodes_.get(), results.get())) : Ref();
}

}  // namespace graphlift::torch_layer
