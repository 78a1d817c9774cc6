// Owns: rows and rules for seeds, random generators and their states.
// Must not: draw numbers (operators do).
#include "capture/callables.h"
#include "capture/calls.h"
#include "cpython/imported.h"
#include "torch/objects.h"

namespace graphlift::capture {

namespace {

Ref unknown(Capture& c, const CallArgs& call) { return break_here(c, "unknown_callable", describe(call.callable)); }

// The number that is given to manual_seed. False: one that torch refuses, or makes an int of first.
bool seed_of(Capture& c, PyObject* given, int64_t* seed) {
  const Ref number = c.concrete(given);
  int overflow = 0;
  *seed = number && PyLong_CheckExact(number.get()) ? PyLong_AsLongLongAndOverflow(number.get(), &overflow) : 0;
  return number && PyLong_CheckExact(number.get()) && !overflow;
}

Ref rule_manual_seed(Capture& c, const CallArgs& call) {
  int64_t seed = 0;
  if (call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0) != 1 || !seed_of(c, call.args[0], &seed))
    return break_here(c, "unknown_callable", describe(call.callable));
  Ref generator = cpython::imported("torch.random", "default_generator");
  if (!generator) return generator;
  c.tracer->seed(nullptr, seed);
  c.know(generator.get(), c.origins().root(guards::OriginKind::Constant, 0, generator.get()));
  return generator;
}

Ref rule_seed_generator(Capture& c, const CallArgs& call) {
  int64_t seed = 0;
  if (call.nargs != 2 || call.kwnames || !seed_of(c, call.args[1], &seed))
    return break_here(c, "unknown_callable", describe(call.callable));
  if (!c.tie_generator(call.args[0], describe(call.callable))) return Ref();
  c.tracer->seed(call.args[0], seed);
  const auto made = c.made_generators.find(call.args[0]);
  if (made == c.made_generators.end()) return Ref::borrow(call.args[0]);
  made->second = true;
  return plain_call(call);  // which seed it has
}

// The state is a value of the graph, read between the draws in front and behind.
Ref rule_get_state(Capture& c, const CallArgs& call) {
  if (call.nargs != 1 || call.kwnames) return unknown(c, call);
  if (!c.tie_generator(call.args[0], describe(call.callable))) return Ref();
  Ref state = c.tracer->generator_state(call.args[0]);
  return state || PyErr_Occurred() ? std::move(state) : unknown(c, call);
}

Ref rule_set_state(Capture& c, const CallArgs& call) {
  if (call.nargs != 2 || call.kwnames || !torch_layer::is_stand_in(call.args[1])) return unknown(c, call);
  if (!c.tie_generator(call.args[0], describe(call.callable))) return Ref();
  if (!c.tracer->set_generator_state(call.args[0], call.args[1])) return PyErr_Occurred() ? Ref() : unknown(c, call);
  if (const auto made = c.made_generators.find(call.args[0]); made != c.made_generators.end()) made->second = false;
  return Ref::borrow(call.args[0]);
}

Ref rule_initial_seed(Capture& c, const CallArgs& call) {
  const auto made = call.nargs == 1 ? c.made_generators.find(call.args[0]) : c.made_generators.end();
  return made != c.made_generators.end() && made->second ? plain_call(call) : unknown(c, call);
}

}  // namespace

// torch.Generator(): each run of the region has one of its own, which begins as a new one does.
Ref make_generator(Capture& c, const CallArgs& call) {
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  for (Py_ssize_t i = 0; i < total; ++i)
    if (!is_value_constant(call.args[i]) && !torch_layer::is_device(call.args[i])) return unknown(c, call);
  Ref made = plain_call(call);
  if (!made) return made;
  if (!c.tracer->make_generator(made.get())) return PyErr_Occurred() ? Ref() : unknown(c, call);
  c.made_generators[made.get()] = true;
  c.keep_alive.push_back(made);
  return made;
}

const Family& random_callables() {
  static const Family rows = {
      {"torch.random.manual_seed", 0, rule_manual_seed},
      {"torch._C.Generator.manual_seed", 0, rule_seed_generator},
      {"torch._C.Generator.get_state", 0, rule_get_state},
      {"torch._C.Generator.set_state", 0, rule_set_state},
      {"torch._C.Generator.initial_seed", 0, rule_initial_seed},
  };
  return rows;
}

}  // namespace graphlift::capture
