// Owns: the loop IR of one kernel: axes, loads, scalar primitives, reductions and stores, with affine indices. It is
// what emitters print code from, and its text is the key of compiled code. Must not: know tensors' names, or a target.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/codegen/primitive.h"
#include "ir/sym.h"
#include "ir/type.h"

namespace graphlift::codegen {

// offset + sum over axes of strides[axis] * index[axis], in elements. Strides of axes that don't matter are 0.
struct Affine {
  ir::Sym offset = 0;
  std::vector<ir::Sym> strides;  // one per axis
};

struct ScalarNode {
  enum class Kind : uint8_t {
    Load,    // buffer at `index`, and `steps[i]` further on per unit of args[i]
    Number,  // `real` or `integer`
    Index,   // the value of `index`, as int64
    Prim,    // `prim` of args
    Reduce,  // `reduce` of args[0] over all reduced axes
    Across,  // `reduce` of args[0] over all others, across rows: known once all rows are done
  };
  Kind kind;
  ir::DType type;  // a compute type
  std::vector<int> args;
  int buffer = -1;
  Affine index;
  std::vector<ir::Sym> steps;
  Prim prim = Prim::Copy;
  ReduceKind reduce = ReduceKind::Sum;
  double real = 0;
  ir::Sym integer = 0;
  // Depends on reduced axes, so that it is computed once per element; else once per row.
  bool inner = false;
  // The number of reductions that have to be complete before it.
  int phase = 0;
};

struct KernelStore {
  int value;  // a node
  int buffer;
  Affine index;
};

struct KernelBuffer {
  ir::DType dtype;
  bool written;
};

struct KernelAxis {
  ir::Sym extent;
  bool reduced;
};

struct Kernel {
  std::vector<KernelAxis> axes;
  std::vector<KernelBuffer> buffers;
  std::vector<ScalarNode> nodes;  // operands first
  std::vector<KernelStore> stores;

  bool has_reduction() const;
  bool has_across() const;
  // Per node: made of reductions across rows, so that it is computed behind them.
  std::vector<bool> find_late() const;
  int phases() const;  // number of passes over the reduced axes
};

// Per node, the axes that its value varies with, as bits. Kernels have 64 axes at most.
std::vector<uint64_t> find_axes(const Kernel& kernel);

// Canonical text: two kernels with one text compute the same with their buffers.
std::string print(const Kernel& kernel);

// What is wrong with a kernel; empty: nothing.
std::string verify(const Kernel& kernel);

// Puts neighbouring axes together where every access lies so that they are one, and drops axes of one element.
void merge_axes(Kernel* kernel);

// No place that is read or written, and no number, varies with a size.
bool has_constant_places(const Kernel& kernel);

// The same kernel for any number of elements, symbol 0; nullopt: something else than the size of one kept axis, of two
// elements or more, would vary.
std::optional<Kernel> of_any_size(const Kernel& kernel);

}  // namespace graphlift::codegen
