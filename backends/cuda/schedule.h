// Owns: how a kernel's axes are spread over the threads of a GPU: which axis neighbouring threads and the lanes of a
// vector access run along, how many threads share a row, what is split over blocks. Must not: write code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/codegen/kernel.h"

namespace graphlift::cuda {

// 32-bit registers of a thread that may hold element values from phase to phase.
inline constexpr int kKeptRegisters = 64;

// What measuring may choose otherwise. The results of sums depend on it in their last digits, and on nothing else.
struct Tiling {
  int lanes = 8;             // of a thread, at most
  int threads = 0;           // of a block that no row fills alone; 0: as usual
  int steps_per_thread = 4;  // vector accesses along a row, before more threads share it
  int split_percent = 100;   // of the blocks that share long rows and columns
  bool operator==(const Tiling&) const = default;
  std::string str() const;  // "8 0 4 100"
};

// What a schedule depends on besides the kernel.
struct Target {
  int architecture = 90;  // compute capability, 10 * major + minor
  int processors = 132;
  int shared_bytes = 227 << 10;  // of one block
  Tiling tiling = {};
};

// What only the tensors of a call tell; the first of each is what is compiled ahead.
struct Variant {
  bool aligned = true;  // memory begins at multiples of 16 bytes
  bool wide = false;    // indices need 64 bits
};

enum class Shape : uint8_t {
  Elements,  // no reduction: a thread has `lanes` elements
  Rows,      // neighbouring threads run along a reduced axis: `across` threads share a row
  Columns,   // neighbouring threads run along a kept axis, `across` of them; the others of a block share their columns
};

struct Schedule {
  Shape shape = Shape::Elements;
  int vector_axis = -1;  // -1: no axes at all
  int lanes = 1;         // elements of a thread next to each other along the vector axis
  // Rows: begin at any element, so that vectors do from the first place in memory that they fit to; the elements before
  // and behind are a step of their own.
  bool peeled = false;
  bool ragged = false;     // the last thread has fewer than `lanes` elements; one kept axis only
  std::vector<int> kept;   // axes of results, outermost first; the vector axis, if there, is last
  std::vector<int> inner;  // reduced axes, likewise
  // Elements: memory is read or written along this axis as well; a block has a tile of both. -1: none.
  int tile_axis = -1;
  int threads = 256;   // of a block
  int across = 1;      // a power of two; Rows: at most 32, or all threads
  int steps = 0;       // Rows: of each thread, unrolled; 0: a loop
  bool keeps = false;  // with steps: element values stay in registers from phase to phase
  int room = 0;        // bytes of shared memory for element values from phase to phase; 0: read again
  int splits = 1;      // blocks that share the elements of a row or column; > 1: one launch per phase
  // Rows that are reduced across: blocks, at most and where there are as many rows, that walk over all rows; 0: each
  // block has its own.
  int walkers = 0, least_walkers = 0;
  int resident = 0;  // such blocks, or those that share columns, that a processor has room for at once; 0: as it comes
  // Such rows in shared memory at once: the one at hand and those that are copied there meanwhile, of the loads that
  // are `ahead`; 0: each row is read when its turn comes.
  int stages = 0;
  std::vector<bool> ahead;
  bool wide = false;
  // Per node: computed once per step along the reduced axes, and the loops that have to be complete before it.
  std::vector<bool> is_inner;
  std::vector<int> phase;
  // Sums of exp(x - the maximum of x), made in the loop of the maximum: that node; -1: others.
  std::vector<int> maximum;
  std::vector<bool> late;         // made of reductions across rows
  int phases = 1;                 // loops
  std::vector<bool> vector_load;  // per node: a load of whole vectors; the places of such
  std::vector<bool> vector_store;

  bool operator==(const Schedule&) const = default;
  bool reduces() const { return shape != Shape::Elements; }
  int rows_per_block() const { return shape == Shape::Rows ? threads / across : 1; }
};

// A tile: vectors along the vector axis by elements along the other; a warp has a tile of 4 by 8 in it.
inline constexpr int kTileVectors = 8, kTileElements = 32;

Schedule schedule_kernel(const codegen::Kernel& kernel, const Target& target, const Variant& variant);

// Those worth measuring, each with another schedule; the usual one first.
std::vector<Tiling> tilings(const codegen::Kernel& kernel, const Target& target, const Variant& variant);
std::optional<Tiling> tiling_from(const std::string& text);

// The reduction to the maximum of x that is taken off in a sum of exp(x - maximum); -1: the node is no such sum.
int shifting_maximum(const codegen::Kernel& kernel, int node);

// Whether an index changes with a reduced axis.
bool varies(const codegen::Kernel& kernel, const codegen::Affine& index);
// Whether the value, of whole numbers, is computed from indices that stay the same along an axis. -1: any indices.
bool is_place(const codegen::Kernel& kernel, int node, int axis);
// Whether it is the same for all rows.
bool is_steady(const codegen::Kernel& kernel, const codegen::Affine& index);
// The largest place that an access reaches, in elements; below kNarrowReach indices fit in 32 bits, with room for the
// threads of a last block.
ir::Sym reach(const codegen::Kernel& kernel);
inline constexpr int64_t kNarrowReach = (int64_t{1} << 31) - (int64_t{1} << 22);
ir::Sym product(const codegen::Kernel& kernel, const std::vector<int>& axes);

}  // namespace graphlift::cuda
