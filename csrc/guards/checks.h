// Owns: one guard as data and the function that runs it on an object: a row per guard kind.
// Must not: fetch, allocate, or run Python code in a check.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "guards/guard.h"
#include "guards/handle.h"

namespace graphlift::guards {

struct Check;
using RunCheck = bool (*)(const Check& check, PyObject* object);

// What a check needs besides the usual: SetIs, and words.
struct CheckDetails {
  std::vector<std::pair<Py_hash_t, PyObject*>> elements;  // SetIs: the operand's, sorted by hash
  std::string words;                                      // of an identity, for when it is gone
};

struct Check {
  RunCheck run;
  GuardKind kind;
  int32_t node;        // where
  int64_t number;      // Length, TypeVersion; the other node of SameAs and NotSameAs
  Handle identity;     // TypeIs, Is, IsNot
  Ref constant;        // the other kinds' operand
  Py_hash_t hash = 0;  // HasKey, LacksKey
  std::unique_ptr<CheckDetails> details;
};

// Where a check gets its object from.
enum class Applies : uint8_t {
  Object,    // the object at the origin
  Nothing,   // Missing: the origin finds nothing
  TwoNodes,  // SameAs, NotSameAs: after the walk
};
Applies applies(GuardKind kind);
int cost(GuardKind kind);

// Runs Python's __hash__ of keys at most here. Throws InternalError when the operand does not suit the kind.
Check make_check(const GuardSet::Entry& entry, int32_t node);
// "type(L['x']) is list"; `other`: the second origin's text.
std::string check_text(const Check& check, const std::string& origin, const std::string& other);
// What holds instead: "len(L['x']) is 3, not 2". The object is null when there is none.
std::string check_failure(const Check& check, const std::string& origin, const std::string& other, PyObject* object);

}  // namespace graphlift::guards
