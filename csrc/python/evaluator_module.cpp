// Owns: the module graphlift_evaluator, through which tests run Python code in our evaluator and look at its tables.
// Needs no torch. Must not: be imported by the package.
#include <set>
#include <string>

#include "base/error.h"
#include "base/ref.h"
#include "cpython/decode.h"
#include "cpython/hook.h"
#include "cpython/liveness.h"
#include "cpython/opcodes.h"
#include "eval/evaluator.h"
#include "eval/semantics.h"

namespace graphlift {
namespace {

using cpython::Frame;
using eval::Evaluator;
using eval::Exit;
using eval::Outcome;
using eval::Step;

// Plain semantics that stop at chosen units of one code object.
struct Stopping : eval::Semantics {
  PyObject* code = nullptr;  // null: every code object
  std::set<int> units;
  bool any_unit = false;
  long skip = 0;  // visits that are let pass
  bool off = false;
  uint64_t stops = 0;

  Step before(Frame& frame, int unit) override {
    if (off || (code && reinterpret_cast<PyObject*>(frame.code()) != code)) return Step::Go;
    if (!any_unit && !units.contains(unit)) return Step::Go;
    if (skip > 0) {
      --skip;
      return Step::Go;
    }
    ++stops;
    return Step::Stop;
  }
};

enum class AtStop { Leave, Step };

class Runner : public cpython::FrameHandler {
 public:
  Stopping semantics;
  AtStop at_stop = AtStop::Leave;
  uint64_t frames = 0;

  PyObject* evaluate(Frame frame, bool throwing, bool* handled) override {
    try {
      if (!Evaluator::can_run(frame)) {
        *handled = false;
        return nullptr;
      }
      ++frames;
      Outcome outcome = Evaluator::run(frame, semantics, throwing);
      while (outcome.exit == Exit::Stopped && at_stop == AtStop::Step) {
        outcome = Evaluator::run_one(frame, semantics);
        if (outcome.exit == Exit::Stopped) outcome = Evaluator::run(frame, semantics);
      }
      return Evaluator::finish(frame, std::move(outcome));
    } catch (const InternalError& error) {
      Py_FatalError(error.what());
    }
  }
};

uint64_t frames_evaluated = 0;

PyObject* call(Runner* runner, PyObject* function, PyObject* args, PyObject* kwargs) {
  Ref result;
  {
    cpython::HookScope scope(runner);
    result = Ref::steal(PyObject_Call(function, args, kwargs));
  }
  frames_evaluated += runner->frames;
  return result.release();
}

PyObject* evaluate(PyObject*, PyObject* args, PyObject* kwargs) {
  if (PyTuple_GET_SIZE(args) < 1) return PyErr_Format(PyExc_TypeError, "evaluate() needs a callable");
  Ref rest = Ref::steal(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)));
  Runner runner;
  return call(&runner, PyTuple_GET_ITEM(args, 0), rest.get(), kwargs);
}

int read_units(PyObject* units, Stopping* semantics) {
  if (units == Py_None) {
    semantics->any_unit = true;
    return 0;
  }
  Ref iterator = Ref::steal(PyObject_GetIter(units));
  if (!iterator) return -1;
  while (Ref item = Ref::steal(PyIter_Next(iterator.get()))) {
    semantics->units.insert(static_cast<int>(PyLong_AsLong(item.get())));
  }
  return PyErr_Occurred() ? -1 : 0;
}

PyObject* evaluate_stopping(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"function", "code", "units", "args", "kwargs", "skip", "step", nullptr};
  PyObject *function, *code, *units, *call_args = nullptr, *call_kwargs = nullptr;
  long skip = 0;
  int step = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O!Olp", const_cast<char**>(names), &function, &code, &units,
                                   &PyTuple_Type, &call_args, &call_kwargs, &skip, &step)) {
    return nullptr;
  }
  Runner runner;
  runner.semantics.code = code == Py_None ? nullptr : code;
  runner.semantics.skip = skip;
  runner.at_stop = step ? AtStop::Step : AtStop::Leave;
  if (read_units(units, &runner.semantics) < 0) return nullptr;
  Ref none = Ref::steal(PyTuple_New(0));
  Ref result = Ref::steal(
      call(&runner, function, call_args ? call_args : none.get(), call_kwargs == Py_None ? nullptr : call_kwargs));
  if (!result) return nullptr;
  return Py_BuildValue("(OK)", result.get(), static_cast<unsigned long long>(runner.semantics.stops));
}

PyObject* counters(PyObject*, PyObject*) {
  return Py_BuildValue("{s:K,s:K}", "instructions", static_cast<unsigned long long>(Evaluator::instructions()),
                       "frames", static_cast<unsigned long long>(frames_evaluated));
}

PyObject* opcode_table(PyObject*, PyObject*) {
  Ref list = Ref::steal(PyList_New(0));
  for (const cpython::OpRow& row : cpython::opcode_rows()) {
    Ref item = Ref::steal(Py_BuildValue("(sii)", std::string(row.name).c_str(), row.since, row.until));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* expand(PyObject*, PyObject* args) {
  int opcode, arg, next;
  if (!PyArg_ParseTuple(args, "iii", &opcode, &arg, &next)) return nullptr;
  const cpython::OpRow* row = cpython::row_of(opcode);
  if (!row) return PyErr_Format(PyExc_ValueError, "no opcode %d", opcode);
  Ref list = Ref::steal(PyList_New(0));
  for (int i = 0; i < row->use_count; ++i) {
    const cpython::Micro micro = row->uses[i].micro(arg, next);
    const int micro_arg = row->uses[i].argument(arg, next);
    Ref item = Ref::steal(Py_BuildValue("(siii)", std::string(cpython::name(micro)).c_str(), micro_arg,
                                        cpython::stack_effect(micro, micro_arg, false),
                                        cpython::stack_effect(micro, micro_arg, true)));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* decode(PyObject*, PyObject* code) {
  if (!PyCode_Check(code)) return PyErr_Format(PyExc_TypeError, "a code object is needed");
  const cpython::Decoded& decoded = cpython::decode(reinterpret_cast<PyCodeObject*>(code));
  Ref list = Ref::steal(PyList_New(0));
  for (const cpython::Instruction& i : decoded.instructions) {
    const std::string name = i.row ? std::string(i.row->name) : "?";
    Ref item = Ref::steal(Py_BuildValue("(iiisi)", i.unit, i.own_unit, i.next, name.c_str(), i.arg));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* handlers(PyObject*, PyObject* code) {
  if (!PyCode_Check(code)) return PyErr_Format(PyExc_TypeError, "a code object is needed");
  Ref list = Ref::steal(PyList_New(0));
  for (const cpython::HandlerEntry& entry : cpython::decode(reinterpret_cast<PyCodeObject*>(code)).handlers) {
    Ref item = Ref::steal(
        Py_BuildValue("(iiiiN)", entry.begin, entry.end, entry.handler, entry.depth, PyBool_FromLong(entry.push_unit)));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* live_at(PyObject*, PyObject* args) {
  PyObject* code;
  int unit;
  if (!PyArg_ParseTuple(args, "O!i", &PyCode_Type, &code, &unit)) return nullptr;
  auto* raw = reinterpret_cast<PyCodeObject*>(code);
  const cpython::LiveSet live = cpython::live_at(raw, unit);
  Ref list = Ref::steal(PyList_New(0));
  for (size_t i = 0; i < live.size(); ++i) {
    PyObject* name = PyTuple_GET_ITEM(raw->co_localsplusnames, static_cast<Py_ssize_t>(i));
    if (live[i] && PyList_Append(list.get(), name) < 0) return nullptr;
  }
  return list.release();
}

PyObject* hook_installed(PyObject*, PyObject*) { return PyBool_FromLong(cpython::hook_installed()); }

template <typename Function>
PyCFunction as_method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"evaluate", as_method(evaluate), METH_VARARGS | METH_KEYWORDS,
     "evaluate(function, *args, **kwargs): the call, with all Python frames under it in our evaluator."},
    {"evaluate_stopping", as_method(evaluate_stopping), METH_VARARGS | METH_KEYWORDS,
     "evaluate_stopping(function, code, units, args=(), kwargs=None, skip=0, step=False): frames of `code` (None: all) "
     "stop\n"
     "at `units` (None: all) after `skip` visits, and go on in CPython's evaluator, or (step) after that one "
     "instruction in\n"
     "ours. Returns (result, number of stops)."},
    {"counters", counters, METH_NOARGS, "Instructions and frames evaluated so far."},
    {"opcode_table", opcode_table, METH_NOARGS, "All rows: (name, first version, last version)."},
    {"expand", expand, METH_VARARGS,
     "expand(opcode, arg, next): [(micro-op, argument, stack effect, effect when it jumps)]."},
    {"decode", decode, METH_O, "decode(code): [(unit, own unit, next unit, opcode name, arg)]."},
    {"handlers", handlers, METH_O, "handlers(code): [(begin, end, handler, depth, pushes the unit)]."},
    {"live_at", live_at, METH_VARARGS, "live_at(code, unit): names of the slots that may be read from there on."},
    {"hook_installed", hook_installed, METH_NOARGS, "Whether the PEP 523 hook is in the interpreter."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "graphlift_evaluator", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace graphlift

PyMODINIT_FUNC PyInit_graphlift_evaluator() { return PyModule_Create(&graphlift::definition); }
