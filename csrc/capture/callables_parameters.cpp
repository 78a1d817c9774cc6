// Owns: see callables_parameters.h.
#include "capture/callables_parameters.h"

#include "capture/calls.h"
#include "torch/parameters.h"

namespace graphlift::capture {

namespace {

struct ParameterArgs {
  PyObject* data = Py_None;
  PyObject* requires_grad = Py_True;
};

// False: not as Parameter.__new__ takes them.
bool read_arguments(const CallArgs& call, ParameterArgs* out) {
  PyObject** places[] = {&out->data, &out->requires_grad};
  if (call.nargs > 2) return false;
  for (Py_ssize_t i = 0; i < call.nargs; ++i) *places[i] = call.args[i];
  for (Py_ssize_t i = 0; call.kwnames && i < PyTuple_GET_SIZE(call.kwnames); ++i) {
    PyObject* name = PyTuple_GET_ITEM(call.kwnames, i);
    const bool data = PyUnicode_CompareWithASCIIString(name, "data") == 0;
    const Py_ssize_t at = data ? 0 : 1;
    if (at < call.nargs || (!data && PyUnicode_CompareWithASCIIString(name, "requires_grad") != 0)) return false;
    *places[at] = call.args[call.nargs + i];
  }
  return PyBool_Check(out->requires_grad);
}

Ref empty_data() {
  const Ref torch = Ref::steal(PyImport_ImportModule("torch"));
  return torch ? Ref::steal(PyObject_CallMethod(torch.get(), "empty", "i", 0)) : Ref();
}

}  // namespace

Ref parameter_call(Capture& c, const CallArgs& call) {
  ParameterArgs args;
  if (!read_arguments(call, &args)) return break_here(c, "unknown_callable", describe(call.callable));
  const Ref data = args.data == Py_None ? empty_data() : Ref::borrow(args.data);
  if (!data) return Ref();
  if (!torch_layer::is_stand_in(data.get()) || !torch_layer::is_plain_tensor_class(data.get()) ||
      !torch_layer::can_be_output(data.get()))
    return break_here(c, "unknown_callable", describe(call.callable));
  if (c.tracer->calls()) c.tracer->calls()->refuse("a parameter is made");
  Ref made = torch_layer::as_parameter(call.callable, data.get(), args.requires_grad == Py_True);
  return c.pending ? Ref() : std::move(made);
}

// Its __new__ is Python code that marks a plain tensor.
Ref buffer_call(Capture& c, const CallArgs& call) {
  const Ref make = Ref::steal(PyObject_GetAttrString(call.callable, "__new__"));
  if (!make) return make;
  std::vector<PyObject*> args{call.callable};
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  args.insert(args.end(), call.args, call.args + total);
  return graphlift::capture::call(c, make.get(), args.data(), call.nargs + 1, call.kwnames);
}

}  // namespace graphlift::capture
