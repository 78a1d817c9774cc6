// Owns: when few long reductions are cut into pieces, and where; blocks of rows that are reduced across. Sizes alone
// decide, so that results do not depend on the number of threads.
#include <algorithm>

#include "backends/cpu/schedule.h"

namespace graphlift::cpu {
namespace {

using codegen::Kernel;
using ir::Sym;

// Rows or columns (in vectors) that are enough work for all threads as they are. With several phases a row is read more
// than once, and stays in a cache only while one thread does all of them.
constexpr int64_t kEnoughUnits = 64, kEnoughUnitsOfPhases = 8;
// Elements of a row that are worth cutting it, and those of a piece at least.
constexpr int64_t kLongRow = 32768, kLeastPiece = 4096;
constexpr int64_t kMostPieces = 64;  // of all rows together
constexpr int64_t kJoinedRows = 32;  // of a piece, for each piece that is joined: wide columns

const Sym& extent(const Kernel& kernel, int axis) { return kernel.axes[static_cast<size_t>(axis)].extent; }

Sym count_units(const Kernel& kernel, const Schedule& schedule) {
  Sym units = 1;
  for (const int axis : schedule.outer) units = units * extent(kernel, axis);
  if (schedule.shape == Shape::Columns) units = units * ceildiv(extent(kernel, schedule.vector_axis), schedule.chunk);
  return units;
}

// Rows of a block: sums of floats go on in parts of that many terms at most; a few of them share the memory of its
// results.
constexpr int64_t kLeastRows = 32, kMostRows = 256, kBlocks = 64;

int64_t up_to(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

void find_cuts(const Kernel& kernel, Schedule* schedule) {
  if (schedule->shape == Shape::Elements || schedule->vector_axis < 0) return;
  const Sym units = count_units(kernel, *schedule);
  const int64_t enough = schedule->phases > 1 ? kEnoughUnitsOfPhases : kEnoughUnits;
  if (!units.is_constant() || units.constant() >= enough || units.constant() == 0) return;

  std::vector<int> axes = schedule->inner;
  if (schedule->shape == Shape::Rows) axes.push_back(schedule->vector_axis);
  // The longest one; of unknown length is long.
  constexpr int64_t kUnknown = int64_t{1} << 20;
  int64_t longest = 0, elements = schedule->shape == Shape::Columns ? schedule->chunk : 1;
  for (const int axis : axes) {
    const Sym& size = extent(kernel, axis);
    const int64_t hint = size.is_constant() ? size.constant() : kUnknown;
    elements *= std::min(hint, kUnknown);
    if (elements == 0) return;
    if (hint > longest) longest = hint, schedule->cut_axis = axis;
    elements = std::min(elements, int64_t{1} << 40);
  }
  if (elements < kLongRow || longest < 2) {
    schedule->cut_axis = -1;
    return;
  }
  const int64_t others = std::max<int64_t>(elements / longest, 1);
  // Each unit of later stages joins what the pieces left: few of them where that is much.
  const int64_t vectors = schedule->shape == Shape::Columns ? schedule->chunk / schedule->lanes : 1;
  int64_t least = std::max<int64_t>(1, (kLeastPiece * vectors + others - 1) / others);
  if (schedule->cut_axis == schedule->vector_axis) least = up_to(least, schedule->lanes);
  const Sym size = extent(kernel, schedule->cut_axis);
  int64_t pieces = std::max<int64_t>(2, kMostPieces / units.constant());
  if (vectors > 1)
    while (pieces > 2 && pieces * pieces * kJoinedRows > longest) --pieces;
  schedule->cut_length = max(ceildiv(ceildiv(size, pieces), least), 1) * least;
  schedule->cuts = ceildiv(size, schedule->cut_length);
}

void find_blocks(const Kernel& kernel, Schedule* schedule) {
  schedule->in_blocks = kernel.has_across();
  if (!schedule->in_blocks) return;
  for (const int axis : schedule->outer) schedule->rows = schedule->rows * extent(kernel, axis);
  schedule->block_rows = min(max(ceildiv(schedule->rows, kBlocks), kLeastRows), kMostRows);
  schedule->blocks = ceildiv(schedule->rows, schedule->block_rows);
}

}  // namespace graphlift::cpu
