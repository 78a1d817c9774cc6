// Owns: see type_forms.h.
#include "capture/type_forms.h"

#include "base/once.h"
#include "guards/constant.h"

namespace graphlift::capture {

namespace {

PyTypeObject* union_type() {
  static constinit Once<PyTypeObject*> once;
  return once.get([] {
    Ref module = Ref::steal(PyImport_ImportModule("types"));
    Ref type = module ? Ref::steal(PyObject_GetAttrString(module.get(), "UnionType")) : Ref();
    if (!type) PyErr_Clear();
    return reinterpret_cast<PyTypeObject*>(type.release());
  });
}

// A member that the form has in C; null without an error: none.
Ref part(PyObject* form, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(form, name));
  if (!value) PyErr_Clear();
  return value;
}

// The same forms of the very same types. No Python code runs.
bool same(PyObject* a, PyObject* b, int depth = 0) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b) || depth > 16) return false;
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
      if (!same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i), depth + 1)) return false;
    return true;
  }
  if (!is_type_form(a)) return false;
  const Ref of_a = part(a, "__args__"), of_b = part(b, "__args__");
  if (!of_a || !of_b || !same(of_a.get(), of_b.get(), depth + 1)) return false;
  if (Py_IS_TYPE(a, union_type())) return true;
  const Ref from_a = part(a, "__origin__"), from_b = part(b, "__origin__");
  const Ref star_a = part(a, "__unpacked__"), star_b = part(b, "__unpacked__");
  return from_a && from_b && star_a.get() == star_b.get() && same(from_a.get(), from_b.get(), depth + 1);
}

class SameForm final : public guards::LeafCheck {
 public:
  explicit SameForm(PyObject* form) : form_(Ref::borrow(form)) {}
  bool check(PyObject* object, int64_t*) const override { return same(object, form_.get()); }
  std::string text(const std::string& origin) const override { return origin + " == " + words(form_.get()); }
  std::string explain(PyObject* object) const override { return "is " + words(object) + ", not " + words(form_.get()); }
  int traverse(visitproc visit, void* arg) const override {
    Py_VISIT(form_.get());
    return 0;
  }

 private:
  static std::string words(PyObject* object) {
    return is_type_form(object) ? guards::repr_text(object)
                                : "an object of type " + std::string(Py_TYPE(object)->tp_name);
  }
  Ref form_;
};

}  // namespace

bool is_type_form(PyObject* object) {
  return Py_IS_TYPE(object, union_type()) || Py_IS_TYPE(object, &Py_GenericAliasType);
}

std::unique_ptr<guards::LeafCheck> type_form_check(PyObject* form) { return std::make_unique<SameForm>(form); }

}  // namespace graphlift::capture
