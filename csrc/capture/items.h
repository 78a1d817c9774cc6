// Owns: items, lengths, membership, iteration and unpacking while capturing.
// Must not: touch outside containers except through containers.h.
#pragma once

#include "capture/capture.h"

namespace graphlift::capture {

Ref get_item(Capture& capture, PyObject* object, PyObject* key);
int set_item(Capture& capture, PyObject* object, PyObject* key, PyObject* value_or_null);
Ref length(Capture& capture, PyObject* object);
int contains(Capture& capture, PyObject* container, PyObject* item);
Ref iterate(Capture& capture, PyObject* iterable);
Ref next(Capture& capture, PyObject* iterator);  // null without error: exhausted
int truth(Capture& capture, PyObject* value);
Ref unary(Capture& capture, int op, PyObject* value);
Ref binary(Capture& capture, int op, PyObject* left, PyObject* right);
Ref compare(Capture& capture, int op, PyObject* left, PyObject* right);
int is_same(Capture& capture, PyObject* left, PyObject* right);
// Arithmetic and comparisons where an operand is a symbolic int and the other an int or one too, without torch's Python
// methods for them. False: not of that kind; *result is untouched.
bool symbolic_binary(Capture& capture, int op, PyObject* left, PyObject* right, Ref* result);
bool symbolic_compare(Capture& capture, int op, PyObject* left, PyObject* right, Ref* result);
// The object with numbers in place of symbolic ints, in tuples and lists too: for a text.
Ref without_symbols(Capture& capture, PyObject* object);
// Instances of int, float, str... subclasses from outside are fixed by identity when their value is used.
bool fix_value(Capture& capture, PyObject* object);

}  // namespace graphlift::capture
