// Owns: see gradients.h.
#include "capture/gradients.h"

#include <optional>
#include <vector>

#include "base/once.h"
#include "capture/calls.h"
#include "capture/gradient_hooks.h"
#include "cpython/imported.h"
#include "torch/any_layout.h"

namespace graphlift::capture {

using guards::OriginId;
using guards::OriginKind;

namespace {

OriginId origin_of(Capture& capture, PyObject* stand_in) {
  return capture.primal_origins[static_cast<size_t>(*capture.tracer->primal_of(stand_in))];
}

bool is_leaf(PyObject* tensor) {
  Ref answer = Ref::steal(PyObject_GetAttrString(tensor, "is_leaf"));
  if (!answer) PyErr_Clear();
  return answer.get() == Py_True;
}

// The outside tensor's gradient as the program sees it: a stand-in or None.
Ref admit_gradient(Capture& capture, PyObject* stand_in, PyObject* real) {
  Ref grad = torch_layer::gradient_of(real);
  return grad ? capture.admit(grad.get(), capture.origins().child(origin_of(capture, stand_in), OriginKind::TensorGrad))
              : grad;
}

// False: error or break.
bool load(Capture& capture, PyObject* stand_in) {
  PyObject* real = capture.outside_tensor(stand_in);
  if (!real || capture.gradients.contains(stand_in)) return true;
  Ref grad = admit_gradient(capture, stand_in, real);
  if (!grad) return false;
  if (grad.get() != Py_None && PyObject_SetAttrString(stand_in, "grad", grad.get()) < 0) {
    PyErr_Clear();
    break_here(capture, "unsupported_tensor", "a gradient of another kind than its tensor");
    return false;
  }
  capture.gradients[stand_in] = std::move(grad);
  return true;
}

// Of leaves that the engine reaches, whether it accumulates into them or gives their gradients to the program.
bool load_leaves(Capture& capture, const std::vector<PyObject*>& leaves, bool accumulated, HooksOfLeaves* hooks) {
  for (PyObject* leaf : leaves) {
    torch_layer::GradientHooks found = torch_layer::gradient_hooks(capture.outside_tensor(leaf));
    if (found.any() && !hooks->add(leaf, found)) return false;
    capture.guards.add_check(origin_of(capture, leaf), torch_layer::gradient_hooks_check(std::move(found)));
    if (accumulated && !load(capture, leaf)) return false;
  }
  return true;
}

bool is_true(PyObject* flag) { return flag == Py_True; }

// Whether gradients are accumulated into leaves: the keyword argument of that name.
bool accumulates(const CallArgs& call) {
  const Py_ssize_t named = call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.kwnames, i), "accumulate_grad") == 0)
      return is_true(call.args[call.nargs + i]);
  return true;
}

PyObject* engine_method() {
  static constinit Once<PyObject*> once;
  return once.get(
      [] { return cpython::imported("torch.autograd.variable", "Variable._execution_engine.run_backward").release(); });
}

}  // namespace

Ref get_gradient(Capture& capture, PyObject* tensor) {
  PyObject* real = capture.outside_tensor(tensor);
  if (real && !is_leaf(tensor)) return admit_gradient(capture, tensor, real);
  if (!load(capture, tensor)) return Ref();
  Ref value = Ref::steal(PyObject_GetAttrString(tensor, "grad"));
  return capture.pending ? Ref() : std::move(value);
}

int set_gradient(Capture& capture, PyObject* tensor, PyObject* value) {
  if (capture.outside_tensor(tensor) && !is_leaf(tensor))
    return break_status(capture, "tensor_attribute_store", "grad");
  if (PyObject_SetAttrString(tensor, "grad", value) < 0) return -1;
  // What it was before need not be known: whatever it is at the exit is assigned.
  if (capture.outside_tensor(tensor)) capture.gradients.try_emplace(tensor, Ref());
  return 0;
}

Ref run_engine(Capture& capture, const CallArgs& call) {
  if (call.nargs < 1 || !PyTuple_Check(call.args[0]) || !engine_method())
    return break_here(capture, "backward_call", "in a way that is not known");
  HooksOfLeaves hooks(capture);
  if (!capture.tracer->in_backward()) {
    std::vector<PyObject*> roots;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(call.args[0]); ++i) {
      PyObject* root = PyTuple_GET_ITEM(call.args[0], i);
      if (!torch_layer::is_stand_in(root)) return break_here(capture, "backward_call", "on no tensor of the region");
      roots.push_back(root);
    }
    const torch_layer::Tracer::Reached reached = capture.tracer->reached(roots);
    if (!reached.refuse.empty()) return break_here(capture, "backward_call", reached.refuse);
    if (!load_leaves(capture, reached.leaves, accumulates(call), &hooks)) return Ref();
  }
  std::optional<torch_layer::AnyLayout> any;  // of gradients that are kept in leaves nobody sees what they are views of
  if (accumulates(call)) any.emplace();
  Ref result =
      Ref::steal(PyObject_Vectorcall(engine_method(), call.args, static_cast<size_t>(call.nargs), call.kwnames));
  return capture.pending ? Ref() : std::move(result);
}

}  // namespace graphlift::capture
