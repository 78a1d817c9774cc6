// Owns: a scope around operators of torch's that compute the same whatever their operands' layout.
#pragma once

namespace graphlift::torch_layer {

// In scope, torch's question whether a tensor is contiguous, where "no" is right for all tensors
// (is_contiguous_or_false), is answered so when sizes that vary would have to decide it: no guard is made. Not around
// what hands out an operand itself when it is contiguous.
class AnyLayout {
 public:
  AnyLayout();
  ~AnyLayout();
  AnyLayout(const AnyLayout&) = delete;
  AnyLayout& operator=(const AnyLayout&) = delete;
  static bool is_on();  // on this thread
};

// In scope, code of the program's runs, whatever is around it: no such answer is given.
class ProgramsLayout {
 public:
  ProgramsLayout();
  ~ProgramsLayout();
  ProgramsLayout(const ProgramsLayout&) = delete;
  ProgramsLayout& operator=(const ProgramsLayout&) = delete;

 private:
  int around_;
};

}  // namespace graphlift::torch_layer
