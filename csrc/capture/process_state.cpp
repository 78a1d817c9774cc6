// Owns: callables that read a number of the process's state, or what is handled: run while capturing, and guarded.
// Must not: hold torch's ambient state (torch/ambient_check.h).
#include "capture/callables.h"
#include "capture/calls.h"
#include "capture/handled.h"
#include "cpython/exception.h"

namespace graphlift::capture {

namespace {

int64_t recursion_limit() { return Py_GetRecursionLimit(); }
int64_t this_thread() { return static_cast<int64_t>(PyThread_get_thread_ident()); }

using Read = int64_t (*)();

// Each state is a type of its own, for a guard set keeps one check of a type.
template <Read read>
class StateIs final : public guards::LeafCheck {
 public:
  StateIs(std::string what, int64_t value) : what_(std::move(what)), value_(value) {}
  bool check(PyObject*, int64_t*) const override { return read() == value_; }
  std::string text(const std::string&) const override { return what_ + " == " + std::to_string(value_); }
  std::string explain(PyObject*) const override {
    return what_ + " is " + std::to_string(read()) + ", not " + std::to_string(value_);
  }

 private:
  std::string what_;
  int64_t value_;
};

template <Read read>
Ref rule_state(Capture& capture, const CallArgs& call) {
  if (call.nargs != 0 || call.kwnames) return run_prepared(capture, call, kPure);  // raises
  capture.guards.add_global(std::make_unique<StateIs<read>>(describe(call.callable) + "()", read()));
  return Ref::steal(PyObject_CallNoArgs(call.callable));
}

// An exception from outside is another one in each call.
Ref rule_exc_info(Capture& capture, const CallArgs& call) {
  PyObject* now = cpython::handled_exception();
  const bool outside = now != Py_None && (now == capture.handled_before || capture.is_outside(now));
  if (outside || (now == Py_None && handled_now()))
    return break_here(capture, "unknown_callable", "sys.exc_info() where an exception from outside is handled");
  if (now == Py_None && capture.handled_before == Py_None) guard_nothing_handled(capture);
  return run_prepared(capture, call, kPure);
}

}  // namespace

const Family& process_state_callables() {
  static const Family rows = {
      {"sys.exc_info", 0, rule_exc_info},
      {"sys.exception", 0, rule_exc_info},
      {"sys.getrecursionlimit", 0, rule_state<recursion_limit>},
      {"_thread.get_ident", 0, rule_state<this_thread>},
      {"torch._C.is_anomaly_enabled", 0, rule_state<torch_layer::anomaly_mode>},
      {"torch._C.is_anomaly_check_nan_enabled", 0, rule_state<torch_layer::anomaly_checks_nan>},
      {"torch._C.get_num_threads", 0, rule_state<torch_layer::thread_count>},
  };
  return rows;
}

}  // namespace graphlift::capture
