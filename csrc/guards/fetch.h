// Owns: how each kind of step finds its object: raw storage only, nothing is called that could run Python code.
// Must not: know trees or guards.
#pragma once

#include "guards/origin.h"

namespace graphlift::guards {

// A step prepared for fetching: the key's hash is known.
struct Step {
  OriginKind kind;
  int32_t index = 0;
  PyObject* key = nullptr;  // borrowed from whoever owns the step
  Py_hash_t hash = 0;
};

// Borrowed; null without an error when there is nothing. The parent keeps the object alive while nothing runs.
using RawFetch = PyObject* (*)(PyObject* parent, const Step& step);

struct FetchRow {
  RawFetch fetch;                  // null for roots and for registered kinds
  bool (*fits)(PyObject* parent);  // objects that can have such a part at all
  const char* text;
};
const FetchRow& fetch_row(OriginKind kind);

bool is_root(OriginKind kind);
bool is_registered(OriginKind kind);  // TensorGrad and Custom: fetched by a FetchStep, which gives a new reference
// Borrowed; null: an empty slot, or the frame has none. Not for Constant.
PyObject* fetch_root(const Roots& roots, OriginKind kind, int index);
// The function registered for a TensorGrad or Custom step; null when there is none.
FetchStep registered_fetch(OriginKind kind, PyObject* key);

// Runs Python's __hash__ at most here. False with a Python error for an unhashable key.
bool prepare_step(const Origin& origin, Step* step);
// The part is certainly absent: the parent could have it, and its storage has nothing there.
bool surely_missing(PyObject* parent, const Step& step);

// "L['x']" for a root; "{parent}.attr" and the like for a step.
std::string step_text(const Origin& origin, const std::string& parent, PyCodeObject* code);

}  // namespace graphlift::guards
