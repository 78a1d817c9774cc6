// Owns: what recipes know of C types: which base allocates an instance, and C-level access to OrderedDict and deque.
// Must not: call a method that a subclass may have overridden.
#include "base/error.h"
#include "capture/recipe_parts.h"
#include "cpython/instance.h"

namespace graphlift::capture {
namespace {

// A method of a C type itself, whatever subclasses override.
Ref call_own(PyTypeObject* type, const char* name, PyObject* self, PyObject* argument = nullptr) {
  PyObject* method = PyDict_GetItemString(cpython::type_dict(type), name);
  GL_CHECK(method, std::string("no method ") + name);
  PyObject* args[] = {self, argument};
  return Ref::steal(PyObject_Vectorcall(method, args, argument ? 2 : 1, nullptr));
}

// Every class statement gives its class this one deallocator; types defined in C have their own.
destructor python_deallocator() {
  static destructor found = [] {
    Ref probe = Ref::steal(PyErr_NewException("graphlift.Probe", nullptr, nullptr));
    GL_CHECK(probe, "a class can't be made");
    return reinterpret_cast<PyTypeObject*>(probe.get())->tp_dealloc;
  }();
  return found;
}

}  // namespace

bool is_python_class(PyTypeObject* type) {
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type->tp_dealloc == python_deallocator();
}

PyTypeObject* c_base(PyTypeObject* type) {
  while (is_python_class(type)) type = type->tp_base;
  return type;
}

PyTypeObject* deque_type() {
  static PyTypeObject* type = [] {
    Ref module = Ref::steal(PyImport_ImportModule("_collections"));
    Ref found = module ? Ref::steal(PyObject_GetAttrString(module.get(), "deque")) : Ref();
    GL_CHECK(found, "no collections.deque");
    return reinterpret_cast<PyTypeObject*>(found.release());
  }();
  return type;
}

bool refill_deque(PyObject* deque, PyObject* items) {
  return call_own(deque_type(), "clear", deque) && call_own(deque_type(), "extend", deque, items);
}

bool clear_ordered_dict(PyObject* dict) { return static_cast<bool>(call_own(&PyODict_Type, "clear", dict)); }

bool put(PyObject* dict, PyObject* key, PyObject* value) {
  return (PyODict_Check(dict) ? PyODict_SetItem(dict, key, value) : PyDict_SetItem(dict, key, value)) == 0;
}

}  // namespace graphlift::capture
