// Owns: how a kernel's axes become loops on a CPU: which axis the vector lanes run along, the order of the others, how
// the work is cut into units for threads. Must not: write code.
#pragma once

#include "backends/codegen/kernel.h"
#include "backends/cpu/llvm_code.h"

namespace graphlift::cpu {

enum class Shape : uint8_t {
  Elements,  // no reduction: a unit is a piece of the vector axis
  Rows,      // lanes run along a reduced axis: a unit is one row
  Columns,   // lanes run along a kept axis: a unit is `chunk` columns, one vector of them or several
};

struct Schedule {
  Shape shape = Shape::Elements;
  int vector_axis = -1;  // -1: no axes at all
  int lanes = 1;
  int64_t chunk = 1;       // elements of the vector axis per unit; of Rows it says nothing
  std::vector<int> outer;  // axes of units, outermost first; without the vector axis
  std::vector<int> inner;  // reduced axes as loops, outermost first; without the vector axis
  // Per node: computed once per step of the inner loops, and the loops that have to be complete before it.
  std::vector<bool> is_inner;
  std::vector<int> phase;
  int phases = 1;
  std::vector<bool> late;  // per node: behind all rows
  // Rows in pieces that lie apart: the innermost loop over them asks for the next piece. -1: memory is read in its
  // order.
  int ahead = -1;
  // Few long rows or columns: each is reduced in `cuts` pieces of `cut_length` along a reduced axis, whose results are
  // joined in the order of the pieces. A phase is a stage then.
  int cut_axis = -1;
  ir::Sym cut_length = 0, cuts = 1;
  // Rows that are reduced across: a unit is a block of `block_rows` rows, whose results are joined in the order of the
  // blocks in a second stage.
  bool in_blocks = false;
  ir::Sym rows = 1, block_rows = 1, blocks = 1;
  // Rows: element values that are kept for later phases, `row_elements` of each.
  std::vector<bool> spilled;
  int64_t row_elements = 0;

  bool varies(const codegen::Affine& index) const;  // with the inner loops
  // Steps of the loops from a level on: `inner`, and behind them the vector loop along a row. Many: not constant.
  int64_t steps_from(const codegen::Kernel& kernel, size_t level) const;
  bool stores_elements(const codegen::KernelStore& store, int at_phase) const;
  bool adds_across(const codegen::Kernel& kernel, size_t node, int at_phase) const;
  bool is_inner_axis(int axis) const;
};

// Decides about cuts; the loops are known.
void find_cuts(const codegen::Kernel& kernel, Schedule* schedule);
// Decides about blocks of rows; the loops are known.
void find_blocks(const codegen::Kernel& kernel, Schedule* schedule);
// Fills `spilled`; the rest of the schedule is complete.
void find_spills(const codegen::Kernel& kernel, Schedule* schedule);

Schedule schedule_kernel(const codegen::Kernel& kernel, const Target& target);

}  // namespace graphlift::cpu
