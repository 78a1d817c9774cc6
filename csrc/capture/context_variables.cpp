// Owns: see context_variables.h; rows of ContextVar's methods.
#include "capture/context_variables.h"

#include <algorithm>

#include "capture/attributes.h"
#include "capture/callables.h"
#include "capture/calls.h"
#include "capture/snapshot_builder.h"
#include "cpython/instance.h"

namespace graphlift::capture {

namespace {

PyObject* method(const char* name) { return PyDict_GetItemString(cpython::type_dict(&PyContextVar_Type), name); }

template <class Sets>
bool value_in(const Sets& sets, PyObject* variable, Ref* now) {
  auto last = std::find_if(sets.rbegin(), sets.rend(), [&](const auto& one) { return one.variable.get() == variable; });
  if (last == sets.rend()) return false;
  *now = last->value;
  return true;
}

}  // namespace

ContextVariables::~ContextVariables() {
  if (!context_) return;
  SavedError error;
  if (PyContext_Exit(context_.get()) < 0) PyErr_Clear();
}

Ref ContextVariables::set(PyObject* variable, PyObject* value) {
  if (!context_ && !runs()) {
    context_ = Ref::steal(PyContext_CopyCurrent());
    if (!context_ || PyContext_Enter(context_.get()) < 0) {
      context_.reset();
      return Ref();
    }
  }
  Ref token = Ref::steal(PyContextVar_Set(variable, value));
  if (token) sets_.push_back({Ref::borrow(variable), Ref::borrow(value), token});
  return token;
}

bool ContextVariables::reset(PyObject* variable, PyObject* token) {
  auto last =
      std::find_if(sets_.rbegin(), sets_.rend(), [&](const Set& one) { return one.variable.get() == variable; });
  if (last == sets_.rend() || last->token.get() != token || PyContextVar_Reset(variable, token) < 0) return false;
  sets_.erase(std::next(last).base());
  return true;
}

bool ContextVariables::was_set(PyObject* variable, Ref* now) const { return value_in(sets_, variable, now); }

Ref ContextVariables::copy() {
  if (!later_.empty()) return Ref();
  Ref context = Ref::steal(PyContext_CopyCurrent());
  if (context) known_.push_back({context, sets_});
  return context;
}

const ContextVariables::Known* ContextVariables::known(PyObject* context) const {
  auto found =
      std::find_if(known_.begin(), known_.end(), [&](const Known& one) { return one.context.get() == context; });
  return found == known_.end() ? nullptr : &*found;
}

bool ContextVariables::is_known(PyObject* context) const { return known(context); }

bool ContextVariables::was_set_in(PyObject* context, PyObject* variable, Ref* value) const {
  const Known* of = known(context);
  return of && value_in(of->sets, variable, value);
}

// What is set in it is done again nowhere.
Ref ContextVariables::run(PyObject* context, const std::function<Ref()>& body) {
  if (PyContext_Enter(context) < 0) return Ref();
  std::vector<Set> around = std::move(sets_);
  sets_ = known(context)->sets;
  ++running_;
  Ref result = body();
  --running_;
  auto of = std::find_if(known_.begin(), known_.end(), [&](const Known& one) { return one.context.get() == context; });
  of->sets = std::move(sets_);
  sets_ = std::move(around);
  const SavedError error;
  if (PyContext_Exit(context) < 0) PyErr_Clear();
  return result;
}

void ContextVariables::reset_later(PyObject* variable, PyObject* token) {
  later_.emplace_back(Ref::borrow(variable), Ref::borrow(token));
}

bool ContextVariables::is_unknown(PyObject* variable) const {
  return std::any_of(later_.begin(), later_.end(), [&](const auto& one) { return one.first.get() == variable; });
}

bool ContextVariables::add_calls(SnapshotBuilder& builder) const {
  for (const auto& [variable, token] : later_) {
    const int parts[] = {builder.constant(method("reset")), builder.constant(variable.get()),
                         builder.node_of(token.get())};
    if (parts[2] < 0) return false;
    builder.result.recipe.effects.push_back({EffectKind::Call, {parts[0], parts[1], parts[2]}});
  }
  for (const Set& one : sets_) {
    RecipeNode call{NodeKind::Call};
    call.children = {builder.constant(method("set")), builder.constant(one.variable.get()),
                     builder.node_of(one.value.get())};
    if (call.children[2] < 0) return false;
    builder.name(one.token.get(), builder.add(std::move(call)));
    builder.result.recipe.acts = true;
  }
  return true;
}

namespace {

bool is_variable(const CallArgs& call) { return call.nargs > 0 && PyContextVar_CheckExact(call.args[0]); }

// The variable is a constant; its value is found again through it.
Ref rule_get(Capture& c, const CallArgs& call) {
  PyObject* variable = call.nargs > 0 ? call.args[0] : nullptr;
  if (!is_variable(call) || call.kwnames || call.nargs > 2) return run_prepared(c, call, kPure);
  if (Ref now; c.context.was_set(variable, &now)) return now;
  if (c.context.is_unknown(variable)) return break_here(c, "unknown_callable", describe(call.callable));
  PyObject* value = nullptr;
  if (PyContextVar_Get(variable, nullptr, &value) < 0) return Ref();
  Ref now = Ref::steal(value);
  // The value by which guards know the variable may be its own default, before which the one given here comes.
  if (now && call.nargs == 2) {
    if (PyContextVar_Get(variable, Py_Ellipsis, &value) < 0) return Ref();
    Ref::steal(value);
    if (value == Py_Ellipsis) return break_here(c, "unknown_callable", describe(call.callable));
  }
  const guards::OriginId origin = c.origins().child(c.origin_of(variable), guards::OriginKind::ContextValue);
  if (now) return c.admit(now.get(), origin);
  c.guards.add(origin, guards::GuardKind::Missing);
  if (call.nargs == 2) return Ref::borrow(call.args[1]);
  PyErr_SetObject(PyExc_LookupError, variable);
  return Ref();
}

Ref rule_set(Capture& c, const CallArgs& call) {
  if (!is_variable(call) || call.nargs != 2 || call.kwnames || c.context.is_unknown(call.args[0]))
    return break_here(c, "unknown_callable", describe(call.callable));
  return c.context.set(call.args[0], call.args[1]);
}

Ref rule_reset(Capture& c, const CallArgs& call) {
  if (!is_variable(call) || call.nargs != 2 || call.kwnames)
    return break_here(c, "unknown_callable", describe(call.callable));
  PyObject *variable = call.args[0], *token = call.args[1];
  if (c.context.reset(variable, token)) return Ref::borrow(Py_None);
  PyErr_Clear();
  Ref now;
  if (!c.is_outside(token) || c.context.was_set(variable, &now) || c.context.is_unknown(variable) || c.context.runs())
    return break_here(c, "unknown_callable", describe(call.callable));
  c.context.reset_later(variable, token);
  return Ref::borrow(Py_None);
}

Ref rule_copy(Capture& c, const CallArgs& call) {
  Ref context = call.nargs == 0 && !call.kwnames ? c.context.copy() : Ref();
  return context || PyErr_Occurred() ? std::move(context) : break_here(c, "unknown_callable", describe(call.callable));
}

Ref rule_run(Capture& c, const CallArgs& call) {
  if (call.nargs < 2 || !c.context.is_known(call.args[0]))
    return break_here(c, "unknown_callable", describe(call.callable));
  return c.context.run(call.args[0], [&] {
    return graphlift::capture::call(c, call.args[1], call.args + 2, call.nargs - 2, call.kwnames);
  });
}

}  // namespace

Ref context_item(Capture& c, PyObject* context, PyObject* variable) {
  Ref value;
  if (c.context.was_set_in(context, variable, &value)) return value;
  return break_here(c, "unsupported_item", "contextvars.Context");
}

const Family& context_callables() {
  static const Family rows = {
      {"_contextvars.ContextVar.get", 0, rule_get},     {"_contextvars.ContextVar.set", 0, rule_set},
      {"_contextvars.ContextVar.reset", 0, rule_reset}, {"_contextvars.copy_context", 0, rule_copy},
      {"_contextvars.Context.run", 0, rule_run},
  };
  return rows;
}

}  // namespace graphlift::capture
