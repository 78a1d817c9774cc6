// Owns: what recipes know of C types: which base allocates an instance, and C-level access to OrderedDict and deque.
// Must not: call a method that a subclass may have overridden.
#include <string_view>

#include "base/error.h"
#include "base/once.h"
#include "capture/recipe_parts.h"
#include "cpython/imported.h"
#include "cpython/instance.h"

namespace graphlift::capture {
namespace {

// A method of a C type itself, whatever subclasses override. Held for ever: the type is.
PyObject* own_method(PyTypeObject* type, const char* name) {
  PyObject* method = PyDict_GetItemString(cpython::type_dict(type), name);
  GL_CHECK(method, std::string("no method ") + name);
  return Py_NewRef(method);
}

// Every class statement gives its class this one deallocator; types defined in C have their own.
destructor python_deallocator() {
  static constinit Once<destructor> once;
  destructor found = once.get([] {
    Ref probe = Ref::steal(PyErr_NewException("graphlift.Probe", nullptr, nullptr));
    GL_CHECK(probe, "a class can't be made");
    return reinterpret_cast<PyTypeObject*>(probe.get())->tp_dealloc;
  });
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
  static constinit Once<PyTypeObject*> once;
  PyTypeObject* type = once.get([] {
    Ref found = cpython::imported("_collections", "deque");
    GL_CHECK(found, "no collections.deque");
    return reinterpret_cast<PyTypeObject*>(found.release());
  });
  return type;
}

bool refill_deque(PyObject* deque, PyObject* items) {
  static constinit Once<PyObject*> clear_once;
  PyObject* clear = clear_once.get([] { return own_method(deque_type(), "clear"); });
  static constinit Once<PyObject*> extend_once;
  PyObject* extend = extend_once.get([] { return own_method(deque_type(), "extend"); });
  PyObject* args[] = {deque, items};
  return Ref::steal(PyObject_Vectorcall(clear, args, 1, nullptr)) &&
         Ref::steal(PyObject_Vectorcall(extend, args, 2, nullptr));
}

bool clear_ordered_dict(PyObject* dict) {
  static constinit Once<PyObject*> clear_once;
  PyObject* clear = clear_once.get([] { return own_method(&PyODict_Type, "clear"); });
  return static_cast<bool>(Ref::steal(PyObject_Vectorcall(clear, &dict, 1, nullptr)));
}

bool warns_of_reduce(PyTypeObject* type) { return std::string_view(type->tp_name).starts_with("itertools."); }

QuietWarnings::QuietWarnings() {
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "warnings");
  if (!module) return;  // then nobody has set anything up, and the default hides these warnings
  filters_ = Ref::steal(PyObject_GetAttrString(module, "filters"));
  entry_ = Ref::steal(Py_BuildValue("(sOOOi)", "ignore", Py_None, PyExc_Warning, Py_None, 0));
  if (!filters_ || !entry_ || !PyList_Check(filters_.get()) || PyList_Insert(filters_.get(), 0, entry_.get()) < 0) {
    PyErr_Clear();
    filters_.reset();
  }
}

QuietWarnings::~QuietWarnings() {
  for (Py_ssize_t i = 0; filters_ && i < PyList_GET_SIZE(filters_.get()); ++i) {
    if (PyList_GET_ITEM(filters_.get(), i) != entry_.get()) continue;
    SavedError error;
    if (PyList_SetSlice(filters_.get(), i, i + 1, nullptr) < 0) PyErr_Clear();
    return;
  }
}

bool put(PyObject* dict, PyObject* key, PyObject* value) {
  return (PyODict_Check(dict) ? PyODict_SetItem(dict, key, value) : PyDict_SetItem(dict, key, value)) == 0;
}

}  // namespace graphlift::capture
