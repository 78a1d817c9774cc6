// Owns: a code object as instructions of micro-ops, decoded once and kept with the code object. Must not: execute
// anything.
#pragma once

#include <Python.h>

#include <memory>
#include <string_view>
#include <vector>

#include "cpython/exception_table.h"
#include "cpython/opcodes.h"

namespace graphlift::cpython {

struct MicroOp {
  Micro micro;
  int arg;
};

// One instruction of the bytecode. EXTENDED_ARG prefixes belong to the instruction behind them; KW_NAMES, PRECALL and
// CALL are one instruction (the names live in CPython's evaluator between them, so a frame can't be left there).
struct Instruction {
  int unit;      // first unit: where jumps go and where a frame can go on
  int own_unit;  // unit of the opcode itself: what tracebacks and exception tables go by
  int next;      // unit behind it and its inline caches
  int arg;
  int micro_begin, micro_end;  // in Decoded::micros
  const OpRow* row;            // names the opcode
};

struct Decoded {
  std::vector<Instruction> instructions;
  std::vector<MicroOp> micros;
  std::vector<int> index_of_unit;  // instruction that starts at a unit or has its opcode there; -1 elsewhere
  std::vector<HandlerEntry> handlers;
  mutable std::vector<std::vector<bool>>
      live;  // per instruction, one flag per slot; filled by live_at() when first asked
  bool runnable =
      true;  // false: coroutines, asynchronous generators, unknown opcodes: CPython's evaluator runs it whole

  const Instruction& at_unit(int unit) const;  // internal error when no instruction is there
};

// Decoded on the first call for a code object; lives as long as that. Needs the GIL.
const Decoded& decode(PyCodeObject* code);
// Where control goes when `micro` jumps, or -1.
int jump_target(const MicroOp& micro);
// False behind it: it never goes on at Instruction::next (returns, raises, unconditional jumps).
bool falls_through(const Decoded& decoded, const Instruction& instruction);

}  // namespace graphlift::cpython
