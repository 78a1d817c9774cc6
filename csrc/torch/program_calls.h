// Owns: the second view of a recording: torch's functions as the program called them, for backends that ask for that. A
// torch-function mode of ours sees each call; what it can't see or say again makes it refuse, with a reason.
// Must not: change what the recorder records, or need torch headers to include it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ref.h"
#include "ir/graph.h"

namespace graphlift::torch_layer {

class Tracer;

class ProgramCalls {
 public:
  using Stack = std::function<std::vector<ir::SourceLine>()>;  // the program's frames now, outermost first
  using Body = std::function<Ref()>;

  ProgramCalls(const Tracer& tracer, Stack stack);
  ~ProgramCalls();
  ProgramCalls(const ProgramCalls&) = delete;
  ProgramCalls& operator=(const ProgramCalls&) = delete;

  // The mode comes and goes with the recorder's.
  void push();
  void pop();
  // A call of torch's would reach this recording first.
  bool watching() const;
  // `body` makes the call, with the mode off; the call is one node whatever it calls itself.
  Ref call(PyObject* function, PyObject* args, PyObject* kwargs, const Body& body);
  // As if nobody recorded calls.
  Ref hidden(const Body& body);
  // A setter of torch's ambient state is called: a node unless it is part of another call.
  void note(PyObject* function, const std::vector<Ref>& args);
  // `result` is what `function` gives for `args`, though nobody called it.
  void add(PyObject* function, PyObject* args, PyObject* result);
  // An operator reached the recorder: it has to be part of a call.
  void operator_runs(const char* name);
  void refuse(const std::string& why);
  bool inside_call() const { return open_ > 0; }
  const std::string& refused() const { return refused_; }

  // (nodes, outputs) as graphlift.foreign reads them. Null without an error: refused.
  Ref finish(std::span<PyObject* const> outputs);

 private:
  Ref encode(PyObject* object);
  Ref encode_items(PyObject* const* items, Py_ssize_t count, const char* kind);
  Ref encode_dict(PyObject* dict);
  Ref encode_tensor(PyObject* tensor);
  Ref describe_result(PyObject* result, long node, std::vector<long>* path);
  Ref stack_now() const;
  bool is_recorded(PyObject* function, PyObject* result, bool acted);
  void record(PyObject* function, PyObject* args, PyObject* kwargs, PyObject* result);

  struct Known {
    Ref hold;       // its address is a key
    Ref reference;  // ("value", node, path)
  };

  const Tracer& tracer_;
  Stack stack_;
  Ref mode_;
  std::vector<bool> pushed_;  // by nesting: whether it lay on the thread's stack
  int open_ = 0;
  std::string refused_;
  Ref nodes_;
  std::unordered_map<PyObject*, Known> known_;
};

// A call of it changes a tensor without any operator.
bool acts_silently(PyObject* function);

// Torch-function modes on this thread's stack that aren't ours.
long program_function_modes();

}  // namespace graphlift::torch_layer
