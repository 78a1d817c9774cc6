// Owns: see control_flow.h.
#include "capture/control_flow.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/once.h"
#include "capture/calls.h"
#include "capture/deferred.h"
#include "capture/depth.h"
#include "cpython/hook.h"
#include "cpython/imported.h"

namespace graphlift::capture {

namespace {

// What something may stand for; for good.
std::vector<Ref> replaced() {
  Ref all = cpython::imported("graphlift.substitutes", "CONTROL_FLOW");
  std::vector<Ref> functions;
  PyObject* function = nullptr;
  Py_ssize_t at = 0;
  while (all && PyDict_Next(all.get(), &at, &function, nullptr)) functions.push_back(Ref::borrow(function));
  return functions;
}

// Asked of every frame.
bool has_substitute(PyObject* callable) {
  if (!PyFunction_Check(callable)) return false;
  static constinit Once<std::vector<Ref>> once;
  const std::vector<Ref>& all = once.get(replaced);
  return std::any_of(all.begin(), all.end(), [&](const Ref& function) { return function.get() == callable; });
}

// In scope, what branches compute is dropped.
class Scouting {
 public:
  explicit Scouting(Capture& capture) : capture_(capture) { capture_.tracer->begin_scouting(); }
  ~Scouting() { capture_.tracer->end_scouting(); }
  Scouting(const Scouting&) = delete;
  Scouting& operator=(const Scouting&) = delete;

 private:
  Capture& capture_;
};

// Outside tensors that a list of tensors was computed from.
std::vector<PyObject*> sources_of(Capture& capture, PyObject* tensors) {
  std::vector<PyObject*> roots;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i) roots.push_back(PyList_GET_ITEM(tensors, i));
  return capture.tracer->sources(roots);
}

Ref only_in(const std::vector<PyObject*>& these, const std::vector<PyObject*>& others) {
  Ref list = Ref::steal(PyList_New(0));
  for (PyObject* source : these)
    if (list && std::find(others.begin(), others.end(), source) == others.end() &&
        PyList_Append(list.get(), source) < 0)
      return Ref();
  return list ? Ref::steal(PyList_AsTuple(list.get())) : list;
}

}  // namespace

PyObject* control_flow_at(PyCodeObject* code, int unit, PyObject* callable) {
  if (!has_substitute(callable)) return nullptr;
  using Place = std::pair<PyCodeObject*, int>;
  static auto* const by_place = new std::map<Place, std::pair<Ref, Ref>>();  // the callable, what stands for it
  auto found = by_place->find({code, unit});
  if (found != by_place->end() && found->second.first.get() == callable) return found->second.second.get();
  const cpython::HookScope nobody(nullptr);
  Ref maker = cpython::imported("graphlift.substitutes", "at_one_place");
  Ref made = maker ? Ref::steal(PyObject_CallOneArg(maker.get(), callable)) : Ref();
  if (!made) {
    PyErr_Clear();
    return nullptr;
  }
  if (found == by_place->end()) Py_INCREF(code);  // its address is a key
  PyObject* function = made.get();
  by_place->insert_or_assign(Place{code, unit}, std::pair{Ref::borrow(callable), std::move(made)});
  return function;
}

void replace_control_flow(cpython::Frame frame) {
  PyObject** slot = called_at(frame, frame.position());
  if (!slot || !*slot) return;
  if (PyObject* function = control_flow_at(frame.code(), frame.position(), *slot))
    Py_SETREF(*slot, Py_NewRef(function));
}

Ref rule_control_flow(Capture& c, const CallArgs& call_args) {
  if (c.frames.empty() || c.standing.size() < c.frames.size())
    return break_here(c, "unknown_callable", describe(call_args.callable));
  const Standing& at = c.standing[c.frames.size() - 1];
  PyObject* function = control_flow_at(at.frame.code(), at.unit, call_args.callable);
  if (!function) return break_here(c, "unknown_callable", describe(call_args.callable));
  return call(c, function, call_args.args, call_args.nargs, call_args.kwnames);
}

Ref scout_branches_call(Capture& c, const CallArgs& call_args) {
  c.scouted = true;
  const size_t before = acts_so_far(c);
  Ref scout = cpython::imported("graphlift.substitutes", "scout_branches");
  if (!scout) return scout;
  Ref results;
  {
    Scouting scouting(c);
    results = call(c, scout.get(), call_args.args, call_args.nargs, call_args.kwnames);
  }
  if (!results) return results;
  if (acts_so_far(c) != before) return break_here(c, "branches", "does more than compute");
  if (!PyList_CheckExact(results.get())) return break_here(c, "branches", "gives another kind of result");
  const auto of_true = sources_of(c, PyList_GET_ITEM(results.get(), 0));
  const auto of_false = sources_of(c, PyList_GET_ITEM(results.get(), 1));
  Ref for_true = only_in(of_false, of_true), for_false = only_in(of_true, of_false);
  return for_true && for_false ? Ref::steal(PyTuple_Pack(2, for_true.get(), for_false.get())) : Ref();
}

Ref is_scouted_call(Capture& c, const CallArgs&) { return Ref::borrow(c.tracer->is_scouting() ? Py_True : Py_False); }

}  // namespace graphlift::capture
