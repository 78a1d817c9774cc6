// Owns: see set_order.h.
#include "capture/set_order.h"

#include "capture/c_reads.h"
#include "capture/recipe_parts.h"
#include "cpython/raw_dict.h"
#include "cpython/set_table.h"

namespace graphlift::capture {

using guards::GuardKind;

namespace {

// Keys of a guarded set: constants by value, compared in C, or by identity.
bool same_key(PyObject* a, PyObject* b) {
  return Py_TYPE(a) == Py_TYPE(b) && cpython::raw_equal(a, b) == cpython::Answer::Yes;
}

class OrderIs final : public guards::LeafCheck {
 public:
  explicit OrderIs(Ref copy) : copy_(std::move(copy)) {}
  bool check(PyObject* object, int64_t*) const override {
    return PyAnySet_Check(object) && cpython::same_table(object, copy_.get(), same_key);
  }
  std::string text(const std::string& origin) const override { return origin + " is iterated in the same order"; }
  std::string explain(PyObject*) const override { return "is iterated in another order"; }
  int traverse(visitproc visit, void* arg) const override {
    Py_VISIT(copy_.get());
    return 0;
  }

 private:
  Ref copy_;
};

// Ties the region to the very object that a key is. False after a break.
bool tie_to_identity(Capture& capture, PyObject* key) {
  const bool by_python = is_python_class(Py_TYPE(key)) && Py_TYPE(key)->tp_hash != PyBaseObject_Type.tp_hash;
  if (!hashes_address(capture, key) && !(by_python && capture.address_hashed)) return true;
  if (!capture.is_outside(key) || by_python || PyMethod_Check(key) || !PyType_SUPPORTS_WEAKREFS(Py_TYPE(key)))
    return static_cast<bool>(break_here(capture, "set_order", Py_TYPE(key)->tp_name));
  capture.guards.add(capture.origin_of(key), GuardKind::Is, key);
  return true;
}

}  // namespace

bool guard_order(Capture& capture, Outside* outside) {
  if (outside->order_guarded) return true;
  outside->order_guarded = true;
  Ref copy = cpython::copy_of_set(outside->object.get());
  if (!copy) return false;
  capture.guards.add_check(outside->origin, std::make_unique<OrderIs>(std::move(copy)));
  return true;
}

bool order_goes_on(Capture& capture, PyObject* set) {
  Outside* outside = PyAnySet_Check(set) ? capture.objects.of_shadow(set) : nullptr;
  return !outside || guard_order(capture, outside);
}

bool order_is_read(Capture& capture, PyObject* set) {
  if (!PyAnySet_Check(set) || capture.is_outside(set)) return true;
  if (!order_goes_on(capture, set)) return false;
  if (PySet_GET_SIZE(set) < 2) return true;
  PyObject* key;
  Py_hash_t hash;
  for (Py_ssize_t at = 0; cpython::raw_set_next(set, &at, &key, &hash);)
    if (!tie_to_identity(capture, key)) return false;
  return true;
}

bool has_fixed_keys(PyObject* set) {
  PyObject* key;
  Py_hash_t hash;
  for (Py_ssize_t at = 0; cpython::raw_set_next(set, &at, &key, &hash);)
    if (!is_value_constant(key) && !is_identity_constant(key)) return false;
  return true;
}

}  // namespace graphlift::capture
