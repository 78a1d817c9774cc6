// Owns: what `except*` does with exception groups. Must not: know frames.
#pragma once

#include "base/ref.h"
#include "eval/semantics.h"

namespace graphlift::eval {

// The part of an exception that an `except*` clause takes, and what is left; either may be None. Null match: an
// exception is set.
struct GroupMatch {
  Ref match, rest;
};
GroupMatch match_group(Semantics& semantics, PyObject* exception, PyObject* type);

// At the end of `except*` clauses: what is to be raised, or None. `original`: what was caught; `raised`: a list of what
// the clauses raised or left (None for nothing).
Ref combine_groups(Semantics& semantics, PyObject* original, PyObject* raised);

}  // namespace graphlift::eval
