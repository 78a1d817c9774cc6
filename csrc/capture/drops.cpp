// Owns: see drops.h.
#include "capture/drops.h"

#include "capture/attributes.h"
#include "capture/capture.h"
#include "cpython/death.h"

namespace graphlift::capture {

using guards::OriginKind;

namespace {

class DiesQuietly final : public guards::LeafCheck {
 public:
  bool check(PyObject* object, int64_t*) const override {
    if (Py_REFCNT(object) > 1) return true;
    cpython::Dropping dropping;
    dropping.drop(object);
    return !dropping.acts();
  }
  std::string text(const std::string& origin) const override { return "nothing runs when " + origin + " is let go"; }
  std::string explain(PyObject*) const override { return "holds something that acts as it dies"; }
  int cost() const override { return 2; }
};

// Whether something else than the variable that held it is known to hold an object: what its path leads through. A
// change on that path is told where it is made.
bool is_held_elsewhere(Capture& capture, guards::OriginId id, guards::OriginId variable) {
  for (; id != guards::kNoOrigin; id = capture.origins().at(id).parent) {
    const OriginKind kind = capture.origins().at(id).kind;
    if (id == variable || kind == OriginKind::WeakTarget || kind == OriginKind::Stack) return false;
  }
  return true;
}

// Constants and stand-ins, in tuples and lists too, which nobody can refer to weakly: most of what a loop lets go.
bool is_quiet(PyObject* value, int depth = 3) {
  if (is_value_constant(value) || torch_layer::is_stand_in(value)) return true;
  if (depth == 0 || !(PyTuple_CheckExact(value) || PyList_CheckExact(value))) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i)
    if (!is_quiet(PySequence_Fast_GET_ITEM(value, i), depth - 1)) return false;
  return true;
}

// Behind the references that the attempt has beside the program.
bool acts_as_it_goes(Capture& capture, PyObject* value) {
  cpython::Dropping dropping;
  capture.drop_copies(dropping);
  for (const Outside& outside : capture.objects.all()) dropping.drop(outside.object.get());
  dropping.drop(value);
  return dropping.acts();
}

}  // namespace

bool let_go(Capture& capture, const cpython::Frame& root, int slot, bool touched) {
  PyObject* value = root.locals()[slot];
  // Of a frame that begins nothing is held but arguments.
  if (!value && !touched && (!capture.begins_frame || capture.caller_root))
    capture.guards.add(capture.root_local(slot), guards::GuardKind::Missing);
  if (!value || (touched && is_quiet(value))) return true;
  const Outside* known = capture.objects.find(value);
  const guards::OriginId variable = capture.root_local(slot);
  const guards::OriginId origin = !touched ? variable : known ? known->origin : guards::kNoOrigin;
  if (is_held_elsewhere(capture, origin, variable) && origin != guards::kNoOrigin) return true;
  if (acts_as_it_goes(capture, value)) {
    break_here(capture, "acts_at_death");
    return false;
  }
  if (origin == guards::kNoOrigin) return true;
  capture.guards.add_check(origin, std::make_unique<DiesQuietly>());
  capture.dropped |= !is_value_constant(value);
  return true;
}

}  // namespace graphlift::capture
