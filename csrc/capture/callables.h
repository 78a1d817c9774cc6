// Owns: the table of known C callables. A row names a callable by its import path and says what may happen in it.
// Must not: list Python functions (they are entered), or torch's operators (recognized as a whole by torch/objects.h).
#pragma once

#include <string>
#include <vector>

#include "capture/capture.h"

namespace graphlift::capture {

// One call as a rule sees it. For methods args[0] is the receiver.
struct CallArgs {
  PyObject* callable;
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;
};

enum CallFlags : uint16_t {
  kPure = 0,
  kShallow = 1,   // moves references only: nested outside containers may be among them
  kMutates = 2,   // may change its first argument
  kSymbolic = 4,  // takes symbolic ints as they are
  kAmbient = 8,   // setter of torch's ambient state: run, undone behind the capture, replayed at the region's exit
  // What C code calls: its first argument; its second one or a keyword `func`; a keyword `key`.
  kCallsFirst = 16,
  kCallsSecond = 32,
  kCallsKey = 64,
  // It looks into the elements of its iterables, or hands them to no one but a callback (kHandsOn: unless there is
  // one).
  kLooksInto = 128,
  kHandsOn = 256,  // it hands the elements on, so that they must stay themselves
  // What it finds out about its arguments, and elements of its iterables, unless it moves references only.
  kCompares = 512,    // it compares or hashes them
  kMakesDict = 1024,  // likewise the keys of a mapping or of pairs
  kReads = 2048,      // values, though nested outside containers may be among them
};

using CallRule = Ref (*)(Capture& capture, const CallArgs& call);

struct CallableRow {
  const char* path;  // "builtins.len", "builtins.list.append", "torch._C._set_grad_enabled"
  uint16_t flags;
  CallRule rule;  // null: called with prepared arguments
};

const CallableRow* find_callable(PyObject* callable);  // null: unknown
std::vector<const CallableRow*> all_callables();       // rows of all families
// Rows whose path names nothing in this interpreter and torch (for the completeness test).
std::vector<std::string> unresolved_callables();
// Makes all tables, so that none is made while capturing.
void prepare_tables();
// C types whose instances are immutable: any method of theirs may run.
bool is_pure_type(PyTypeObject* type);
// Builtin containers: any method of theirs runs on a shadow.
bool is_container_type(PyTypeObject* type);
// Classes in C that may be called with prepared arguments.
const CallableRow* find_constructor(PyTypeObject* type);

// Calls with arguments as C code may see them, and maps the result back.
Ref run_prepared(Capture& capture, const CallArgs& call, uint16_t flags);
Ref plain_call(const CallArgs& call);  // the callable as it is, by the interpreter

// print: the call is replayed behind the region when nothing but constants and tensors is shown, so that the text is
// fixed now; else a break.
Ref print_call(Capture& capture, const CallArgs& call);
// warnings.warn: as print_call, told of the line that warns. A break where a filter makes errors of warnings.
Ref warn_call(Capture& capture, const CallArgs& call);
// Methods of loggers: as print_call, told of the line that logs, and whatever is given when the level is off.
Ref log_call(Capture& capture, const CallArgs& call);

// hash() and __hash__ methods in C: a break where the number is made of an address.
Ref hash_call(Capture& capture, const CallArgs& call);
bool is_hash_of(PyObject* descriptor);
// Whether the innermost frame is a __hash__ that C code asks for, to tell keys apart.
bool is_key_hash(Capture& capture);

// Setters of torch's ambient state: run now, so that the recording sees the state; undone behind the capture; replayed
// at the region's exit.
Ref ambient_call(Capture& capture, const CallArgs& call);

// context[variable] of a contextvars.Context.
Ref context_item(Capture& capture, PyObject* context, PyObject* variable);

// torch.Generator(...)
Ref make_generator(Capture& capture, const CallArgs& call);

// Families of rows.
using Family = std::vector<CallableRow>;
const Family& builtin_callables();
const Family& module_callables();
const Family& torch_callables();
const Family& process_state_callables();
const Family& functorch_callables();
const Family& context_callables();
const Family& torch_function_callables();
const Family& random_callables();
const Family& constructor_rows();

}  // namespace graphlift::capture
