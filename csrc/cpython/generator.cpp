// Owns: see generator.h; the layout of generator objects in 3.11 to 3.14.
#include "cpython/internal.h"

#include "cpython/generator.h"

#include "cpython/decode.h"

namespace graphlift::cpython {
namespace {

_PyInterpreterFrame* frame_of(PyObject* generator) {
  auto* bytes = reinterpret_cast<char*>(generator) + offsetof(PyGenObject, gi_iframe);
  return reinterpret_cast<_PyInterpreterFrame*>(bytes);
}

#if PY_VERSION_HEX >= 0x030d0000
constexpr int kLookupOffset = 1;  // see leave.cpp
#else
constexpr int kLookupOffset = 0;
#endif

// From 3.12 on a handler around the whole body turns StopIteration into RuntimeError: it runs no code of the program's.
bool is_programs_own(const Decoded& decoded, const HandlerEntry& entry) {
  return decoded.at_unit(entry.handler).row->name != std::string_view("CALL_INTRINSIC_1");
}

}  // namespace

PyObject* generator_of(Frame frame) {
  if (!frame.is_generator()) return nullptr;
  auto* bytes = reinterpret_cast<char*>(frame.raw()) - offsetof(PyGenObject, gi_iframe);
  auto* object = reinterpret_cast<PyObject*>(bytes);
  return PyGen_CheckExact(object) ? object : nullptr;
}

bool is_suspended(PyObject* generator) {
  const int state = reinterpret_cast<PyGenObject*>(generator)->gi_frame_state;
  return state > FRAME_CREATED && state < FRAME_EXECUTING;
}

bool acts_when_closed(PyObject* generator) {
  if (!is_suspended(generator)) return false;
  Frame frame(frame_of(generator));
  const Decoded& decoded = decode(frame.code());
  const HandlerEntry* entry = find_handler(decoded.handlers, frame.executing() - kLookupOffset);
  return entry && is_programs_own(decoded, *entry);
}

}  // namespace graphlift::cpython
