// Owns: context variables while capturing: what is set runs in a copy of the context, and again at the region's exit.
// Must not: leave the thread in another context than the attempt found.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/ref.h"

namespace graphlift::capture {

class SnapshotBuilder;

class ContextVariables {
 public:
  ContextVariables() = default;
  ~ContextVariables();
  ContextVariables(const ContextVariables&) = delete;
  ContextVariables& operator=(const ContextVariables&) = delete;

  // Null with a Python error.
  Ref set(PyObject* variable, PyObject* value);
  // Takes back what `set` did last of those of the variable that still count. False: the token is another one's.
  bool reset(PyObject* variable, PyObject* token);
  // Whether the value is what `set` was given; it is `now` then.
  bool was_set(PyObject* variable, Ref* now) const;
  // A token that was made before the region, at its exit: what the variable is then is not known.
  void reset_later(PyObject* variable, PyObject* token);
  bool is_unknown(PyObject* variable) const;
  size_t set_count() const { return sets_.size() + later_.size(); }  // what the exit has to do
  // contextvars.copy_context() and what runs in such a context. It can't be made again behind the region, so that only
  // those that live and die in it are known. Null: a Python error, or a break is to follow (no error).
  Ref copy();
  bool is_known(PyObject* context) const;
  Ref run(PyObject* context, const std::function<Ref()>& body);
  bool runs() const { return running_ > 0; }
  // The variable was set in the context, or before it was copied, by the region; `value` is what it is there.
  bool was_set_in(PyObject* context, PyObject* variable, Ref* value) const;
  // Calls at the exit, each variable's in program order. False: something can't be made again.
  bool add_calls(SnapshotBuilder& builder) const;

 private:
  struct Set {
    Ref variable, value, token;
  };
  struct Known {
    Ref context;
    std::vector<Set> sets;
  };
  const Known* known(PyObject* context) const;

  Ref context_;            // entered; null: nothing was set
  std::vector<Set> sets_;  // that count, in the context that is entered now
  std::vector<Known> known_;
  int running_ = 0;  // contexts that are entered by run()
  std::vector<std::pair<Ref, Ref>> later_;
};

}  // namespace graphlift::capture
