// Owns: what kernels' code is made of besides values: whole numbers, variables on the stack, loops, conditions, the
// frame of a function. Must not: know kernels or schedules.
#pragma once

#include <functional>
#include <map>

#include "backends/cpu/llvm_code.h"
#include "ir/sym.h"

namespace graphlift::cpu {

class LoopWriter {
 public:
  explicit LoopWriter(const Target& target) : code_(target) {}

 protected:
  // A size that is known, or one of the numbers that a call brings along.
  Reg symbolic(const ir::Sym& value);
  Reg whole(int64_t value) { return code_.integer(value, ir::DType::int64, 1); }
  Reg add(const Reg& a, const Reg& b);
  Reg times(const Reg& a, const Reg& b);
  // rest mod count; what is left of `rest` is its quotient.
  Reg take(Reg* rest, const Reg& count);

  std::string variable(const std::string& type);
  void set(const std::string& variable, const Reg& value);
  Reg get(const std::string& variable, ir::DType type, int lanes);
  // for (i = from; i < to; i += step); leaves the counter behind the last full step.
  std::string loop(const std::string& from, const std::string& to, int64_t step,
                   const std::function<void(const Reg&)>& body);
  void when(const Reg& condition, const std::function<void()>& yes, const std::function<void()>& no = {});

  // Ends a function `void @work<n>(<buffers>, <numbers>, i64 %begin, i64 %end)`.
  void end_function();
  // The module: `void name(ptr buffers, ptr numbers, i64 begin, i64 end)` calls one of the functions; of several the
  // number behind all others says which.
  std::string module(const std::string& name, size_t buffers) const;

  Code code_;
  std::vector<ir::Sym> numbers_;

 private:
  // Buffers and numbers as parameters; calls `visit(type, name)` for each.
  template <class Visit>
  void for_each_parameter(size_t buffers, Visit visit) const;

  std::string allocas_;
  std::map<std::string, int> number_of_;
  std::vector<std::string> functions_;  // bodies, with what they keep on the stack
};

}  // namespace graphlift::cpu
