// Owns: see c_proxies.h.
#include "capture/c_proxies.h"

#include <structmember.h>

#include "base/error.h"
#include "base/once.h"
#include "capture/attributes.h"
#include "capture/calls.h"
#include "capture/containers.h"
#include "capture/gradient_hooks.h"
#include "capture/recipe_parts.h"
#include "capture/root.h"

namespace graphlift::capture {

namespace {

enum class Role : uint8_t { Call, Hook, LookInto, HandOn };

struct Proxy {
  PyObject_HEAD PyObject* callable;  // null unless the role is Call or Hook
  Role role;
  Look look;  // at what is handed on: an element, or what the callable returned
};

Ref look_into(Capture& capture, PyObject* element, bool moves, Look look) {
  if (is_outside_iterator(capture, element)) return break_here(capture, "loop_boundary");
  const bool container = capture.is_outside(element) && container_kind(element) != Kind::None;
  if (container && moves) return break_here(capture, "nested_outside", "a C function");
  Ref seen = for_c_code(capture, element);
  if (seen && holds_outside_container(capture, seen.get()))
    return break_here(capture, "nested_outside", "a C function");
  return seen && look_at_element(capture, seen.get(), look) ? std::move(seen) : Ref();
}

Ref proxied(Capture& capture, const Proxy& proxy, PyObject* args, PyObject* kwargs) {
  if (capture.pending) return Ref();
  if (proxy.role == Role::Hook) return call_hook(capture, proxy.callable, args, kwargs);
  if (proxy.role != Role::Call)
    return look_into(capture, PyTuple_GET_ITEM(args, 0), proxy.role == Role::HandOn, proxy.look);
  Ref result = call_ex(capture, proxy.callable, args, kwargs);
  return result && look_at_element(capture, result.get(), proxy.look) ? std::move(result) : Ref();
}

// Called by C code: an internal error is put aside and thrown again at the root.
PyObject* proxy_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Capture* capture = current_capture();
  if (!capture) {
    PyErr_SetString(PyExc_SystemError, "graphlift: a proxy outlived its capture");
    return nullptr;
  }
  Ref result;
  try {
    result = proxied(*capture, *reinterpret_cast<Proxy*>(self), args, kwargs);
  } catch (const InternalError& error) {
    if (!capture->internal_error) capture->internal_error = error.what();
    break_here(*capture, "internal_recording", error.what());
  }
  if (capture->pending) result.reset();
  if (!result && !PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "graphlift: unwinding to the root");
  return result.release();
}

void proxy_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<Proxy*>(self)->callable);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyTypeObject* proxy_type() {
  static constinit Once<PyTypeObject*> once;
  PyTypeObject* type = once.get([] {
    static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(proxy_call)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(proxy_dealloc)},
                                  {0, nullptr}};
    static PyType_Spec spec = {"graphlift.CapturedCall", sizeof(Proxy), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  });
  return type;
}

Ref make_proxy(PyObject* callable, Role role, Look look) {
  PyTypeObject* type = proxy_type();
  Ref made = type ? Ref::steal(type->tp_alloc(type, 0)) : Ref();
  if (!made) return made;
  auto* proxy = reinterpret_cast<Proxy*>(made.get());
  proxy->callable = Py_XNewRef(callable);
  proxy->role = role;
  proxy->look = look;
  return made;
}

}  // namespace

bool is_proxy(PyObject* object) { return Py_IS_TYPE(object, proxy_type()); }

bool is_outside_iterator(Capture& capture, PyObject* object) {
  return PyIter_Check(object) && capture.is_outside(object) && !is_python_class(Py_TYPE(object));
}

Ref call_proxy(Capture& capture, PyObject* callable, Look look) {
  const bool entered = look == Look::Nothing && capture.fresh_functions.count(callable);
  if (!PyCallable_Check(callable) || entered) return Ref::borrow(callable);
  return make_proxy(callable, Role::Call, look);
}

Ref hook_proxy(PyObject* hook) { return make_proxy(hook, Role::Hook, Look::Nothing); }

Ref element_proxy(Capture& capture, PyObject* iterable, bool moves, Look look) {
  (void)capture;
  Ref proxy = make_proxy(nullptr, moves ? Role::HandOn : Role::LookInto, look);
  auto* map = reinterpret_cast<PyObject*>(&PyMap_Type);
  return proxy ? Ref::steal(PyObject_CallFunctionObjArgs(map, proxy.get(), iterable, nullptr)) : proxy;
}

}  // namespace graphlift::capture
