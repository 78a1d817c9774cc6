// Owns: Semantics as CPython does it: names, cells, imports.
#include "cpython/api.h"
#include "cpython/exception.h"
#include "eval/errors.h"
#include "eval/semantics.h"

namespace graphlift::eval {
namespace {

constexpr const char* kNotDefined = "name '%U' is not defined";

Ref load_global_or_builtin(cpython::Frame& frame, PyObject* name) {
  Ref value = mapping_get(frame.globals(), name);
  if (!value && !PyErr_Occurred()) value = mapping_get(frame.builtins(), name);
  if (!value && !PyErr_Occurred()) name_error(kNotDefined, name);
  return value;
}

PyObject* locals_or_error(cpython::Frame& frame, const char* format, PyObject* name) {
  PyObject* mapping = frame.locals_mapping();
  if (!mapping) PyErr_Format(PyExc_SystemError, format, name);
  return mapping;
}

// `import a.b as c` and circular imports: the submodule may be in sys.modules before it is an attribute.
Ref submodule(PyObject* package, PyObject* name) {
  if (!package || !PyUnicode_Check(package)) return Ref();
  Ref full = Ref::steal(PyUnicode_FromFormat("%U.%U", package, name));
  return full ? Ref::steal(PyImport_GetModule(full.get())) : Ref();
}

void cannot_import(PyObject* module, PyObject* package, PyObject* name) {
  Ref unknown = Ref::steal(PyUnicode_FromString("<unknown module name>"));
  PyObject* origin = package && PyUnicode_Check(package) ? package : unknown.get();
  Ref file = Ref::steal(PyModule_GetFilenameObject(module));
  Ref message;
  if (!file) {
    PyErr_Clear();
    message = Ref::steal(PyUnicode_FromFormat("cannot import name %R from %R (unknown location)", name, origin));
  } else {
    Ref spec = cpython::optional_attribute(module, interned("__spec__"));
    const char* format = cpython::is_initializing(spec.get())
                             ? "cannot import name %R from partially initialized module %R "
                               "(most likely due to a circular import) (%S)"
                             : "cannot import name %R from %R (%S)";
    message = Ref::steal(PyUnicode_FromFormat(format, name, origin, file.get()));
  }
  if (!message) return;
  PyErr_SetImportError(message.get(), origin, file.get());
  Ref exception = cpython::take_exception();
  if (PyObject_HasAttrString(exception.get(), "name_from")) {
    PyObject_SetAttrString(exception.get(), "name_from", name);
    PyErr_Clear();
  }
  cpython::restore_exception(std::move(exception));
}

Ref public_names(PyObject* module, PyObject** dict) {
  Ref names = cpython::optional_attribute(module, interned("__all__"));
  if (names || PyErr_Occurred()) return names;
  Ref attributes = cpython::optional_attribute(module, interned("__dict__"));
  if (!attributes) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "from-import-* object has no __dict__ and no __all__");
    return Ref();
  }
  *dict = attributes.get();  // the module keeps it
  return Ref::steal(PyMapping_Keys(attributes.get()));
}

bool check_star_name(PyObject* module, PyObject* name, bool from_dict) {
  if (PyUnicode_Check(name)) return true;
  Ref module_name = Ref::steal(PyObject_GetAttrString(module, "__name__"));
  if (!module_name) return false;
  PyErr_Format(PyExc_TypeError, "%s in %U.%s must be str, not %.100s", from_dict ? "Key" : "Item", module_name.get(),
               from_dict ? "__dict__" : "__all__", Py_TYPE(name)->tp_name);
  return false;
}

}  // namespace

Ref Semantics::load_global(cpython::Frame& frame, PyObject* name) { return load_global_or_builtin(frame, name); }

int Semantics::store_global(cpython::Frame& frame, PyObject* name, PyObject* value) {
  if (value) return PyDict_SetItem(frame.globals(), name, value);
  const int status = PyDict_DelItem(frame.globals(), name);
  if (status < 0 && PyErr_ExceptionMatches(PyExc_KeyError)) {
    PyErr_Clear();
    name_error(kNotDefined, name);
  }
  return status;
}

Ref Semantics::load_name(cpython::Frame& frame, PyObject* name) {
  PyObject* mapping = locals_or_error(frame, "no locals when loading %R", name);
  if (!mapping) return Ref();
  Ref value = mapping_get(mapping, name);
  return value || PyErr_Occurred() ? std::move(value) : load_global_or_builtin(frame, name);
}

int Semantics::store_name(cpython::Frame& frame, PyObject* name, PyObject* value) {
  const char* format = value ? "no locals found when storing %R" : "no locals when deleting %R";
  PyObject* mapping = locals_or_error(frame, format, name);
  if (!mapping) return -1;
  if (value)
    return PyDict_CheckExact(mapping) ? PyDict_SetItem(mapping, name, value) : PyObject_SetItem(mapping, name, value);
  const int status = PyObject_DelItem(mapping, name);
  if (status != 0) {
    PyErr_Clear();
    name_error(kNotDefined, name);
  }
  return status;
}

Ref Semantics::load_cell(cpython::Frame&, PyObject* cell) { return Ref::borrow(PyCell_GET(cell)); }

int Semantics::store_cell(cpython::Frame&, PyObject* cell, PyObject* value) { return PyCell_Set(cell, value); }

Ref Semantics::import_name(cpython::Frame& frame, PyObject* name, PyObject* fromlist, PyObject* level) {
  Ref import = mapping_get(frame.builtins(), interned("__import__"));
  if (!import) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "__import__ not found");
    return Ref();
  }
  PyObject* locals = frame.locals_mapping() ? frame.locals_mapping() : Py_None;
  PyObject* args[] = {name, frame.globals(), locals, fromlist, level};
  return Ref::steal(PyObject_Vectorcall(import.get(), args, 5, nullptr));
}

Ref Semantics::import_from(cpython::Frame&, PyObject* module, PyObject* name) {
  Ref value = cpython::optional_attribute(module, name);
  if (value || PyErr_Occurred()) return value;
  Ref package = cpython::optional_attribute(module, interned("__name__"));
  if (PyErr_Occurred()) return Ref();
  value = submodule(package.get(), name);
  if (!value && !PyErr_Occurred()) cannot_import(module, package.get(), name);
  return value;
}

int Semantics::import_star(cpython::Frame& frame, PyObject* module) {
  PyObject* mapping = frame.locals_mapping();
  if (!mapping) {
    PyErr_SetString(PyExc_SystemError, "no locals found during 'import *'");
    return -1;
  }
  PyObject* dict = nullptr;
  Ref names = public_names(module, &dict);
  Ref iterator = names ? Ref::steal(PyObject_GetIter(names.get())) : Ref();
  if (!iterator) return -1;
  while (Ref name = Ref::steal(PyIter_Next(iterator.get()))) {
    if (!check_star_name(module, name.get(), dict != nullptr)) return -1;
    if (dict && PyUnicode_GET_LENGTH(name.get()) > 0 && PyUnicode_READ_CHAR(name.get(), 0) == '_') continue;
    Ref value = Ref::steal(PyObject_GetAttr(module, name.get()));
    if (!value || PyObject_SetItem(mapping, name.get(), value.get()) < 0) return -1;
  }
  return PyErr_Occurred() ? -1 : 0;
}

Ref Semantics::build_class(cpython::Frame& frame) {
  Ref function = mapping_get(frame.builtins(), interned("__build_class__"));
  if (!function && !PyErr_Occurred()) PyErr_SetString(PyExc_NameError, "__build_class__ not found");
  return function;
}

}  // namespace graphlift::eval
