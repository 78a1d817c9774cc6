// Owns: relations between bound symbols, prepared for checking. Must not: know objects.
#pragma once

#include "ir/sym.h"

namespace graphlift::guards {

class Symbolic {
 public:
  explicit Symbolic(ir::SymGuard guard);
  // Allocates nothing. An expression that has no value for these symbols (division by zero, overflow) does not hold.
  bool holds(const int64_t* symbols, size_t count) const;
  std::string text() const { return guard_.str(); }
  // "s0*2 == s1 does not hold for s0 = 3, s1 = 5"
  std::string explain(const int64_t* symbols) const;

 private:
  // A constant or one symbol, which most relations have on both sides: read without walking an expression.
  struct Side {
    bool simple = false;
    ir::SymbolId symbol = -1;
    int64_t constant = 0;
  };
  static Side side_of(const ir::Sym& value);

  ir::SymGuard guard_;
  Side left_, right_;
};

}  // namespace graphlift::guards
