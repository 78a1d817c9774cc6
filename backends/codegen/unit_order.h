// Owns: which unit of work (a kernel, an external call) has to run before which, transitively. Must not: know what
// units are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace graphlift::codegen {

class UnitOrder {
 public:
  int add();
  int size() const { return static_cast<int>(before_.size()); }
  // `unit` runs after `earlier`. Precondition: `earlier` does not run after `unit`.
  void depend(int unit, int earlier);
  // Whether `from` has to run before `to`.
  bool reaches(int from, int to) const { return has(before_[static_cast<std::size_t>(to)], from); }
  // All units, each behind those it depends on; earlier numbers first where there is a choice.
  std::vector<int> order() const;

 private:
  using Bits = std::vector<uint64_t>;
  static bool has(const Bits& bits, int unit);
  static void put(Bits* bits, int unit);
  static void merge(Bits* into, const Bits& from);
  std::vector<Bits> before_;
};

}  // namespace graphlift::codegen
