// Owns: several memos of one plan, for code that is called with a few objects in turn (a method of many layers): which
// to ask, and which walk to remember where. Must not: keep trying when remembering does not pay.
#pragma once

#include "guards/memo.h"

namespace graphlift::guards {

class Ways {
 public:
  explicit Ways(const Plan& plan);

  // Hit, Fail, or Miss: then the caller walks and offers what it found to record().
  Outcome run(const Plan& plan, const Roots& roots, int64_t* symbols, Ref* owned, Failure* failure);
  // After a miss and a walk that held. Gives the slots of the walk, which may have changed hands with `walked`.
  PyObject* const* record(const Plan& plan, std::vector<PyObject*>* walked);
  PyObject* const* slots() const { return ways_[current_].slots(); }

 private:
  size_t place_for_new_root(const Plan& plan);

  std::vector<Memo> ways_;
  size_t limit_;  // 1: the roots are new objects at each call
  size_t current_ = 0;
  size_t missed_ = 0;  // the way whose roots fitted; ways_.size(): none
  size_t oldest_ = 0;
  size_t misses_in_row_ = 0;
  int pause_ = 0;
};

}  // namespace graphlift::guards
