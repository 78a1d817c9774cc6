// Owns: what C code finds out about objects from outside that it gets, in containers too: which ones they are, since it
// compares by identity first and hashes by address, and values that no guard sees.
// Must not: run the code, or know which code it is (callables.h).
#pragma once

#include <string>

#include "capture/capture.h"

namespace graphlift::capture {

enum class Look : uint8_t {
  Nothing,   // moves references
  Reads,     // values and texts
  Keys,      // hashes and compares: keys of a dict, elements of any other container
  Pairs,     // makes a dict of it: of its keys, or of pairs that begin with them
  Compares,  // as Keys, and values of dicts
};

// Guards what C code finds out. False after a break, which says that `who` (a callable, or null: an operator) did it.
bool look_at(Capture& capture, PyObject* object, Look look, PyObject* who = nullptr);
// An element of an iterable that C code looks at so.
bool look_at_element(Capture& capture, PyObject* element, Look look, PyObject* who = nullptr);
// An object from outside with a state in C that no rule reads.
bool is_opaque(Capture& capture, PyObject* object);
// An instance without a state in C: what is asked of it is asked in Python, or goes by identity.
bool is_plain_instance(PyObject* object);
// Whether the hash of an object is made of the address of one from outside.
bool hashes_address(Capture& capture, PyObject* object);
// What C code made of texts (null: of other objects). A break when the address of an object got into it.
Ref without_address(Capture& capture, Ref made, PyObject* const* from, Py_ssize_t count, PyObject* who = nullptr);

}  // namespace graphlift::capture
