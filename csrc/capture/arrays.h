// Owns: numpy's arrays from outside as far as their shape and kind go; its kinds and numbers, which are constants, and
// what may be computed on its numbers. Must not: load numpy, or read what is in an array.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>

#include "capture/callables.h"

namespace graphlift::capture {

void register_array_fetches();  // how guards fetch the shape of an array; once

bool is_array(PyObject* object);         // a numpy.ndarray, of no subclass
bool is_array_kind(PyObject* object);    // a numpy.dtype of numbers in this machine's order
bool is_array_number(PyObject* object);  // numpy.float32(2) and the like
bool is_array_number_type(PyTypeObject* type);
// Holds for numbers of the same type and bits.
std::unique_ptr<guards::LeafCheck> array_number_check(PyObject* number);
int64_t array_number_bits(PyObject* number);  // to tell one from another

Ref array_get_attr(Capture& capture, PyObject* array, PyObject* name);
Ref kind_get_attr(Capture& capture, PyObject* kind, PyObject* name);
Ref array_length(Capture& capture, PyObject* array);

// Runs an operator. With numbers or kinds of numpy among its operands the others have to be numbers or tensors, and it
// is a break where numpy would tell of a floating-point error.
Ref with_array_numbers(Capture& capture, std::initializer_list<PyObject*> operands, const std::function<Ref()>& body);
// numpy.float32(2)
Ref make_array_number(Capture& capture, const CallArgs& call);
// Functions of numpy on numbers, and methods of its numbers. False: the callable is none of these.
bool call_on_array_numbers(Capture& capture, const CallArgs& call, Ref* result);

}  // namespace graphlift::capture
