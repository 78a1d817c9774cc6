// Owns: see c_reads.h.
#include "capture/c_reads.h"

#include <string_view>
#include <unordered_set>

#include "capture/attribute_kinds.h"
#include "capture/c_calls.h"
#include "capture/calls.h"
#include "capture/containers.h"
#include "capture/items.h"
#include "capture/recipe_parts.h"
#include "capture/set_order.h"
#include "cpython/raw_dict.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

namespace {

bool goes_by_identity(PyTypeObject* type) {
  return type->tp_hash == PyBaseObject_Type.tp_hash &&
         (!type->tp_richcompare || type->tp_richcompare == PyBaseObject_Type.tp_richcompare);
}

bool is_bound_c_method(PyObject* object) {
  if (Py_IS_TYPE(object, &_PyMethodWrapper_Type)) return true;
  return PyCFunction_Check(object) && !is_identity_constant(object);
}

PyObject* self_of(PyObject* bound) {
  return Py_IS_TYPE(bound, &_PyMethodWrapper_Type) ? method_wrapper_self(bound) : PyCFunction_GET_SELF(bound);
}

// One look at an object and what is in it.
class Walk {
 public:
  Walk(Capture& capture, Look look, PyObject* who) : capture_(capture), look_(look), who_(who) {}

  bool any(PyObject* object) {
    if (is_value_constant(object) || is_identity_constant(object)) return true;
    if (torch_layer::is_stand_in(object)) return compares() ? identity(object) : true;
    if (torch_layer::is_sym_scalar(object) || !seen_.insert(object).second) return true;
    Outside* outside = capture_.objects.find(object);
    return outside ? from_outside(outside) : fresh(object);
  }

  bool pairs(PyObject* object) {
    if (PyDict_Check(object)) return dict(object, false);
    if (!PyTuple_Check(object) && !PyList_Check(object)) return any(object);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      if (!pair(PySequence_Fast_GET_ITEM(object, i))) return false;
    return true;
  }

  bool pair(PyObject* object) {
    const bool known = (PyTuple_Check(object) || PyList_Check(object)) && !capture_.is_outside(object);
    return known && PySequence_Fast_GET_SIZE(object) > 0 ? any(PySequence_Fast_GET_ITEM(object, 0)) : any(object);
  }

 private:
  bool compares() const { return look_ != Look::Reads; }

  bool refuse(const char* id, PyObject* object) {
    const std::string who = who_ ? describe(who_) : "an operator or format";
    const bool unknown = std::string_view(id) == "unknown_callable";
    break_here(capture_, id, unknown ? who + " on an object of type " + Py_TYPE(object)->tp_name : who);
    return false;
  }

  // That it is this one and none of the others decides.
  bool identity(PyObject* object) {
    if (capture_.is_outside(object) || capture_.tensor_of_stand_in.count(object)) capture_.told_apart.insert(object);
    return true;
  }

  bool from_outside(Outside* outside) {
    PyObject* object = outside->object.get();
    if (container_kind(object) != Kind::None) return container(object);
    if (fix_value(capture_, object)) return true;
    if (PyFunction_Check(object)) return compares() ? identity(object) : fixed(outside);
    if (PyMethod_Check(object) || is_bound_c_method(object)) return bound(outside);
    if (PyWeakref_CheckRefExact(object) && compares()) return referent(outside);
    if (compares() && goes_by_identity(Py_TYPE(object))) return identity(object);
    if (!is_plain_instance(object)) return refuse("unknown_callable", object);
    return compares() ? identity(object) : true;
  }

  // A name that is in no guard.
  bool fixed(const Outside* outside) {
    capture_.guards.add(outside->origin, GuardKind::Is, outside->object.get());
    return true;
  }

  // An outside tuple compares as its guarded copy does, while that has the same items.
  bool container(PyObject* object) {
    if (!PyTuple_Check(object) && !PyFrozenSet_Check(object)) return refuse("nested_outside", object);
    const Ref shadow = for_c_code(capture_, object);
    if (!shadow) return false;
    for (Py_ssize_t i = 0; PyTuple_Check(object) && i < PyTuple_GET_SIZE(object); ++i)
      if (PyTuple_GET_ITEM(object, i) != PyTuple_GET_ITEM(shadow.get(), i)) return refuse("nested_outside", object);
    return fresh(shadow.get());
  }

  bool bound(const Outside* outside) {
    PyObject* object = outside->object.get();
    const OriginId of_function = capture_.origins().child(outside->origin, OriginKind::MethodFunction);
    const OriginId of_self = capture_.origins().child(outside->origin, OriginKind::MethodSelf);
    if (PyMethod_Check(object)) {
      if (!capture_.admit(PyMethod_GET_FUNCTION(object), of_function)) return false;
      capture_.guards.add(of_function, GuardKind::Is, PyMethod_GET_FUNCTION(object));
      return self_of_bound(capture_.admit(PyMethod_GET_SELF(object), of_self));
    }
    if (!PyCFunction_Check(object) || !PyCFunction_GET_SELF(object)) return refuse("unknown_callable", object);
    PyObject* self = PyCFunction_GET_SELF(object);
    Ref name = Ref::steal(PyObject_GetAttrString(object, "__name__"));
    PyObject* descriptor = name ? _PyType_Lookup(Py_TYPE(self), name.get()) : nullptr;
    if (!descriptor || !c_descriptor_matches(descriptor, object)) return refuse("unknown_callable", object);
    capture_.guards.add(of_function, GuardKind::Is, descriptor);
    return self_of_bound(capture_.admit(self, of_self));
  }

  // Two methods are equal when they are bound to one object; the text of one has the text of that.
  bool self_of_bound(const Ref& self) {
    if (!self) return false;
    return compares() ? identity(self.get()) : any(self.get());
  }

  bool referent(const Outside* outside) {
    PyObject* target = cpython::weakref_target(outside->object.get());
    if (!target) return refuse("unknown_callable", outside->object.get());
    const Ref seen = capture_.admit(target, capture_.origins().child(outside->origin, OriginKind::WeakTarget));
    return seen && any(seen.get());
  }

  bool dict(PyObject* object, bool values) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);)
      if (!any(key) || (values && !any(value))) return false;
    return true;
  }

  bool set(PyObject* object) {
    if (!compares() && !order_is_read(capture_, object)) return false;
    PyObject* item;
    Py_hash_t hash;
    for (Py_ssize_t at = 0; cpython::raw_set_next(object, &at, &item, &hash);)
      if (!any(item)) return false;
    return true;
  }

  bool fresh(PyObject* object) {
    if (PyDict_Check(object)) return dict(object, look_ == Look::Reads || look_ == Look::Compares);
    if (PyAnySet_Check(object)) return set(object);
    if (container_kind(object) == Kind::DictView) return view(object);
    if (PyTuple_Check(object) || PyList_Check(object)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
        if (!any(PySequence_Fast_GET_ITEM(object, i))) return false;
      return true;
    }
    if (PyFunction_Check(object)) return true;
    if (PyMethod_Check(object) && compares()) return identity(PyMethod_GET_SELF(object));
    if (is_bound_c_method(object) && compares()) return !self_of(object) || identity(self_of(object));
    if (PyWeakref_CheckRefExact(object)) {
      PyObject* target = cpython::weakref_target(object);
      return !target || any(target);
    }
    if (PyExceptionInstance_Check(object))
      return compares() || any(reinterpret_cast<PyBaseExceptionObject*>(object)->args);
    return is_python_class(Py_TYPE(object)) ? true : parts(object);
  }

  // Of a view of keys, the values that they stand for are not asked.
  bool view(PyObject* object) {
    auto visit = [](PyObject* part, void* self) {
      auto* walk = static_cast<Walk*>(self);
      const bool fresh = PyDict_Check(part) && !walk->capture_.is_outside(part);
      return (fresh ? walk->dict(part, walk->views_values_) : walk->any(part)) ? 0 : 1;
    };
    views_values_ = !PyDictKeys_Check(object);
    return Py_TYPE(object)->tp_traverse(object, visit, this) == 0;
  }

  // What a C object of another kind holds, where it is asked for more than which object it is.
  bool parts(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    const bool asked = compares() ? !goes_by_identity(type) : type->tp_repr != PyBaseObject_Type.tp_repr;
    if (!asked || !type->tp_traverse || !PyType_IS_GC(type) || torch_layer::is_torch_owned(type)) return true;
    auto visit = [](PyObject* part, void* walk) { return static_cast<Walk*>(walk)->any(part) ? 0 : 1; };
    return type->tp_traverse(object, visit, this) == 0;
  }

  Capture& capture_;
  Look look_;
  PyObject* who_;
  bool views_values_ = false;
  std::unordered_set<PyObject*> seen_;
};

bool is_text(PyObject* object) { return PyUnicode_CheckExact(object) || PyBytes_CheckExact(object); }

// How many addresses a text may have: CPython writes " at 0x..." in front of each.
int addresses_in(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyBytes_CheckExact(object) ? PyBytes_AS_STRING(object) : PyUnicode_AsUTF8AndSize(object, &size);
  if (PyBytes_CheckExact(object)) size = PyBytes_GET_SIZE(object);
  if (!text) PyErr_Clear();
  const std::string_view all(text ? text : "", text ? static_cast<size_t>(size) : 0);
  int count = 0;
  for (size_t at = all.find(" at 0x"); at != std::string_view::npos; at = all.find(" at 0x", at + 1)) ++count;
  return count;
}

}  // namespace

bool is_plain_instance(PyObject* object) {
  if (!is_python_class(Py_TYPE(object))) return false;
  PyTypeObject* base = solid_base(Py_TYPE(object));
  return base == &PyBaseObject_Type || torch_layer::is_known_base(base);
}

bool look_at(Capture& capture, PyObject* object, Look look, PyObject* who) {
  if (look == Look::Nothing || is_value_constant(object)) return true;
  Walk walk(capture, look, who);
  return look == Look::Pairs ? walk.pairs(object) : walk.any(object);
}

bool look_at_element(Capture& capture, PyObject* element, Look look, PyObject* who) {
  if (look == Look::Nothing || is_value_constant(element)) return true;
  Walk walk(capture, look, who);
  return look == Look::Pairs ? walk.pair(element) : walk.any(element);
}

bool is_opaque(Capture& capture, PyObject* object) {
  if (!capture.is_outside(object) || container_kind(object) != Kind::None) return false;
  if (PyFunction_Check(object) || PyMethod_Check(object) || PyCell_Check(object)) return false;
  return !is_python_class(Py_TYPE(object));
}

bool hashes_address(Capture& capture, PyObject* object) {
  if (is_value_constant(object) || is_identity_constant(object)) return false;
  if (capture.tensor_of_stand_in.count(object)) return true;
  if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      if (hashes_address(capture, PyTuple_GET_ITEM(object, i))) return true;
    return false;
  }
  if (PyFrozenSet_Check(object)) {
    PyObject* item;
    Py_hash_t hash;
    for (Py_ssize_t at = 0; cpython::raw_set_next(object, &at, &item, &hash);)
      if (hashes_address(capture, item)) return true;
    return false;
  }
  auto known = [&](PyObject* part) {
    return part && (capture.is_outside(part) || capture.tensor_of_stand_in.count(part));
  };
  if (PyMethod_Check(object))
    return known(object) || known(PyMethod_GET_SELF(object)) || known(PyMethod_GET_FUNCTION(object));
  if (is_bound_c_method(object)) return known(object) || known(self_of(object));
  if (PyWeakref_CheckRefExact(object)) {
    PyObject* target = cpython::weakref_target(object);
    return known(object) || (target && hashes_address(capture, target));
  }
  return capture.is_outside(object) && Py_TYPE(object)->tp_hash == PyBaseObject_Type.tp_hash;
}

Ref without_address(Capture& capture, Ref made, PyObject* const* from, Py_ssize_t count, PyObject* who) {
  if (!made || !is_text(made.get())) return made;
  int addresses = addresses_in(made.get());
  auto known = [&](PyObject* part) { addresses -= is_text(part) ? addresses_in(part) : 0; };
  for (Py_ssize_t i = 0; addresses > 0 && i < count; ++i) {
    known(from[i]);
    if (!PyTuple_CheckExact(from[i]) && !PyList_CheckExact(from[i])) continue;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(from[i]); ++k) known(PySequence_Fast_GET_ITEM(from[i], k));
  }
  return addresses <= 0 ? std::move(made) : break_here(capture, "address_text", who ? describe(who) : "a format");
}

}  // namespace graphlift::capture
