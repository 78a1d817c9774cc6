// Owns: the table of opcodes (opcodes.def) and of micro-ops (micro_ops.def). Must not: know code objects or execute
// anything.
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "cpython/version.h"

namespace graphlift::cpython {

enum class Micro : uint8_t {
#define MICRO(name, effect, jump_effect) name,
#include "cpython/micro_ops.def"
#undef MICRO
};

inline constexpr int kMicroCount = 0
#define MICRO(name, effect, jump_effect) +1
#include "cpython/micro_ops.def"
#undef MICRO
    ;

std::string_view name(Micro micro);
int stack_effect(Micro micro, int arg, bool jump);

// One micro-op of an opcode; which one and its argument follow from the instruction's argument and the unit behind it.
struct MicroUse {
  Micro (*micro)(int arg, int next);
  int (*argument)(int arg, int next);
};

inline constexpr int kNow = 999;

struct OpRow {
  std::string_view name;
  int since, until;  // versions, inclusive
  MicroUse uses[2];
  int use_count;
};

// All rows, of all versions.
std::span<const OpRow> opcode_rows();
// The row of an opcode number of the running interpreter; null for numbers without one. Needs the GIL.
const OpRow* row_of(int opcode);
// The running interpreter's number of a name, or -1.
int opcode_number(std::string_view name);

}  // namespace graphlift::cpython
