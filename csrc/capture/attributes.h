// Owns: attribute reads and writes while capturing, one rule per kind of object, mirroring CPython's slots.
// Must not: call unknown C getters or setters on outside objects.
#pragma once

#include "capture/capture.h"

namespace graphlift::capture {

Ref get_attr(Capture& capture, PyObject* object, PyObject* name);
// The method form: for a function found on the type, the function, and *self is set to the receiver.
Ref get_method(Capture& capture, PyObject* object, PyObject* name, Ref* self);
int set_attr(Capture& capture, PyObject* object, PyObject* name, PyObject* value_or_null);
// As the attribute of a super object: the lookup starts behind `start` in the MRO of `type`.
Ref get_super_attr(Capture& capture, PyTypeObject* start, PyTypeObject* type, PyObject* self, PyObject* name);
// object.__setattr__ / object.__getattribute__ on any instance: without the class's own overrides.
int generic_set_attr(Capture& capture, PyObject* object, PyObject* name, PyObject* value_or_null);
Ref generic_get_attr(Capture& capture, PyObject* object, PyObject* name, Ref* method_self);
// Looks a special method up on the type and binds it. Null without error: there is none.
Ref special_method(Capture& capture, PyObject* object, const char* name);
// The function's closure cells, defaults and keyword defaults become known; its code is guarded.
int know_function(Capture& capture, PyObject* function);

}  // namespace graphlift::capture
