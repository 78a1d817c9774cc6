// Owns: outside containers and instances as capture sees them: reads through overlays and shadows with guards on
// exactly what was read, writes into them. Raw storage only: methods that a subclass overrides are calls.cpp's
// business. Must not: touch the outside object, or run Python code.
#pragma once

#include "capture/capture.h"

namespace graphlift::capture {

enum class Kind : uint8_t { None, Tuple, List, Dict, OrderedDict, Set, FrozenSet, Deque, MappingProxy, DictView };

// By raw storage; subclasses count as what they derive from.
Kind container_kind(PyObject* object);

// A key whose hash and equality run no Python: exact str, bytes, numbers, None, tuples of such; types, functions,
// modules and other objects with identity semantics.
bool is_guardable_key(PyObject* key);

// --- dicts (instance dicts, module dicts and globals too)
// --------------------------------------------------------------- Null without an error: the key is absent (now
// guarded). `dict` may be fresh or outside.
Ref dict_get(Capture& capture, PyObject* dict, PyObject* key);
int dict_set(Capture& capture, PyObject* dict, PyObject* key,
             PyObject* value_or_null);  // deleting an absent key: KeyError
// The instance dict of an object as a table entry's object (outside instance) or itself (fresh). Borrowed; null: has
// none.
PyObject* instance_dict(Capture& capture, PyObject* object);

// --- whole containers
// ----------------------------------------------------------------------------------------------------- What C code
// gets for `object`: an outside container's shadow (made and guarded on first need), else the object itself.
Ref for_c_code(Capture& capture, PyObject* object);
// As for_c_code, and symbolic ints become numbers.
Ref for_plain_c_code(Capture& capture, PyObject* object);
// Appends without a look at what is in an outside list.
int list_append(Capture& capture, PyObject* list, PyObject* item);
// Marks shadows as changed; call after a mutating operation on what for_c_code returned.
void note_mutation(Capture& capture, PyObject* object);
// Maps a shadow that came out of C code back to the outside object.
Ref from_c_code(Capture& capture, Ref object);
// True when a fresh container holds, at any depth, an outside container that C code would look into.
bool holds_outside_container(Capture& capture, PyObject* object, int depth = 0);

// --- items by index
// -------------------------------------------------------------------------------------------------------
Ref sequence_item(Capture& capture, PyObject* sequence,
                  Py_ssize_t index);  // outside list or tuple without a shadow, in range

// --- slots and cells
// --------------------------------------------------------------------------------------------------------
Ref field_get(Capture& capture, Outside* outside, PyObject* descriptor, bool* written);
void field_set(Capture& capture, Outside* outside, PyObject* descriptor, PyObject* value_or_null);

}  // namespace graphlift::capture
