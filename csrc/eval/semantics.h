// Owns: the slots through which the evaluator touches objects, one virtual function per slot of CPython's data model.
// The defaults do what CPython does. capture/ overrides them to guard, to defer and to refuse. Must not: know bytecode
// (evaluator.h) or torch. Conventions are CPython's: a null Ref or -1 means that a Python exception is set.
#pragma once

#include "base/ref.h"
#include "cpython/frame.h"

namespace graphlift::eval {

// How the evaluator is to go on at an instruction boundary.
enum class Step {
  Go,    // execute the instruction
  Stop,  // leave the frame as it is before this instruction; run() returns Exit::Stopped
};

enum UnaryOp : int { kPositive = '+', kNegative = '-', kInvert = '~' };

class Semantics {
 public:
  virtual ~Semantics() = default;

  // --- control -------------------------------------------------------------------------------------------------------
  // Called before every instruction of the original bytecode (not per micro-op). `unit` is its index in code units.
  virtual Step before(cpython::Frame&, int unit) {
    (void)unit;
    return Step::Go;
  }
  // Asked after a slot reported a Python error: true means "unwind without running handlers" (a break is under way).
  // run() then returns Exit::Stopped at the instruction that failed; the frame's content is unspecified.
  virtual bool unwinding() { return false; }

  // Before `raise` writes into the exception: what is handled becomes its context. Null: the handled one is raised
  // again.
  virtual int raising(PyObject* exception_or_null, PyObject* cause_or_null) {
    (void)exception_or_null, (void)cause_or_null;
    return 0;
  }

  // --- operators -----------------------------------------------------------------------------------------------------
  virtual Ref unary(int op, PyObject* value);                    // UnaryOp below
  virtual Ref binary(int op, PyObject* left, PyObject* right);   // NB_ADD ... NB_INPLACE_XOR, as in opcode.h
  virtual Ref compare(int op, PyObject* left, PyObject* right);  // Py_LT ... Py_GE
  virtual int is_same(PyObject* left, PyObject* right);          // `is`
  virtual int contains(PyObject* container, PyObject* item);
  virtual int truth(PyObject* value);

  // --- attributes and items ------------------------------------------------------------------------------------------
  virtual Ref get_attr(PyObject* object, PyObject* name);
  // LOAD_METHOD / LOAD_SUPER_ATTR's method form: returns the callable; sets *self to the receiver when the callable is
  // an unbound function that is to be called with it first, else leaves it null.
  virtual Ref get_method(PyObject* object, PyObject* name, Ref* self);
  virtual Ref get_super_attr(PyObject* super_type, PyObject* type, PyObject* self, PyObject* name);
  virtual int set_attr(PyObject* object, PyObject* name, PyObject* value);  // value null: delete
  virtual Ref get_item(PyObject* object, PyObject* key);
  virtual int set_item(PyObject* object, PyObject* key, PyObject* value);  // value null: delete
  virtual Ref length(PyObject* object);                                    // GET_LEN of `match`

  // --- names ---------------------------------------------------------------------------------------------------------
  virtual Ref load_global(cpython::Frame&, PyObject* name);  // globals, then builtins; NameError as CPython words it
  virtual int store_global(cpython::Frame&, PyObject* name, PyObject* value);  // value null: delete
  virtual Ref load_name(cpython::Frame&, PyObject* name);  // class bodies and exec: locals mapping, globals, builtins
  virtual int store_name(cpython::Frame&, PyObject* name, PyObject* value);
  virtual Ref load_cell(cpython::Frame&, PyObject* cell);                    // null without error: the cell is empty
  virtual int store_cell(cpython::Frame&, PyObject* cell, PyObject* value);  // value null: delete
  virtual Ref import_name(cpython::Frame&, PyObject* name, PyObject* fromlist, PyObject* level);
  virtual Ref import_from(cpython::Frame&, PyObject* module, PyObject* name);
  virtual int import_star(cpython::Frame&, PyObject* module);

  // --- calls ---------------------------------------------------------------------------------------------------------
  // As PyObject_Vectorcall: `args` holds nargs positional values, then one per name in kwnames (may be null).
  virtual Ref call(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
  virtual Ref call_ex(PyObject* callable, PyObject* args_tuple, PyObject* kwargs_or_null);
  virtual Ref make_function(cpython::Frame&, PyObject* code, PyObject* defaults, PyObject* kwdefaults,
                            PyObject* annotations, PyObject* closure);
  virtual Ref build_class(cpython::Frame&);  // LOAD_BUILD_CLASS

  // --- iteration and containers --------------------------------------------------------------------------------------
  virtual Ref iterate(PyObject* iterable);
  virtual Ref next(PyObject* iterator);  // null without error: exhausted
  // One step of `yield from`: 1: *result is what the iterator yielded; 0: what it returned; -1: an exception is set.
  virtual int send(PyObject* iterator, PyObject* value, Ref* result);
  // UNPACK_SEQUENCE / UNPACK_EX: fills `out` (before + after values, and a list between them when `star`).
  virtual int unpack(PyObject* iterable, int before, int after, bool star, Ref* out);
  // Displays and comprehensions: the container is fresh, or was begun before the evaluation of the frame.
  virtual int list_append(PyObject* list, PyObject* value);
  virtual int set_add(PyObject* set, PyObject* value);
  virtual int map_add(PyObject* dict, PyObject* key, PyObject* value);
  virtual Ref list_to_tuple(PyObject* list);
  virtual int list_extend(PyObject* list, PyObject* iterable);
  virtual int set_update(PyObject* set, PyObject* iterable);
  virtual int dict_update(PyObject* dict, PyObject* mapping);
  virtual int dict_merge(PyObject* dict, PyObject* mapping, PyObject* callable);  // of a call: duplicate keys raise
  virtual Ref format(PyObject* value, int conversion, PyObject* spec_or_null);    // conversion: 0, 's', 'r' or 'a'
  virtual Ref convert(PyObject* value, int conversion);  // 3.13 converts in an instruction of its own

  // --- with, match, exceptions ---------------------------------------------------------------------------------------
  virtual Ref load_special(PyObject* object, PyObject* name);  // __enter__/__exit__, bound; looked up on the type
  virtual Ref match_class(PyObject* subject, PyObject* type, int nargs, PyObject* names);  // tuple or None
  virtual Ref match_keys(PyObject* subject, PyObject* keys);                               // tuple or None
  virtual int match_is(PyObject* subject, bool mapping);  // MATCH_MAPPING (true) / MATCH_SEQUENCE
  virtual int exception_matches(PyObject* exception, PyObject* type);
};

}  // namespace graphlift::eval
