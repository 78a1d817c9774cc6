// Owns: see flex_attention.h.
#include "capture/flex_attention.h"

#include <algorithm>

#include "capture/calls.h"
#include "capture/dynamo_calls.h"
#include "cpython/imported.h"

namespace graphlift::capture {

namespace {

constexpr const char* kModule = "graphlift.attention";

// Only its functions call those of scores and masks.
bool is_modifying(const Capture& c) {
  return std::any_of(c.frames.begin(), c.frames.end(),
                     [](const cpython::Frame& frame) { return is_code_of(frame, kModule); });
}

}  // namespace

Ref rule_flex_attention(Capture& c, const CallArgs& call_args) {
  const Ref table = cpython::imported(kModule, "TABLE");
  const Ref function =
      Ref::borrow(table ? PyDict_GetItemString(table.get(), describe(call_args.callable).c_str()) : nullptr);
  if (!function) return PyErr_Occurred() ? Ref() : break_here(c, "unknown_callable", describe(call_args.callable));
  return call(c, function.get(), call_args.args, call_args.nargs, call_args.kwnames);
}

Ref index_by_places(Capture& c, PyObject* tensor, PyObject* key) {
  if (!is_modifying(c)) return Ref();
  const Ref index = cpython::imported(kModule, "index");
  PyObject* args[] = {tensor, key};
  Ref result = index ? call(c, index.get(), args, 2, nullptr) : Ref();
  return result.get() == Py_NotImplemented ? Ref() : std::move(result);
}

}  // namespace graphlift::capture
