// Owns: the primitive graph: what kernels compute, as whole-tensor primitives with broadcasting, views as index maps.
// Must not: know how operators are named, which primitives share a kernel, or a target.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/codegen/primitive.h"
#include "ir/graph.h"

namespace graphlift::codegen {

// Index of one dim of a view's operand: start + step * (index of the view's dim `from`); from -1: start alone.
struct ViewDim {
  int from = -1;
  ir::Sym start = 0;
  ir::Sym step = 1;
  bool whole() const;  // start 0, step 1
};

// What has to hold of a tensor's elements before they are used as places. It is checked before the kernel that reads at
// them runs, so that kernels read nothing else than what they may.
struct PlaceCheck {
  enum class Words : uint8_t { Select, Gather, Index, Target };  // of which operator the error is
  ir::ValueRef index;
  ir::Sym size = 0;  // places are below it
  int dim = 0;       // of which the words speak: for Index, how many indices stand before it
  Words words = Words::Select;
  bool wraps = false;              // down to -size
  std::optional<int64_t> ignored;  // this one may be anywhere
};

struct TensorNode {
  enum class Kind : uint8_t {
    Buffer,   // memory that exists before: a graph input, or the result of an extern call
    Number,   // rank 0
    Iota,     // the index along `dim`, as int64
    Map,      // `prim`, element by element; operands broadcast
    Reduce,   // `reduce` over the dims in `reduced`, which stay with size 1
    View,     // affine: `view` has one entry per dim of the operand
    Reshape,  // the same elements in row-major order under other sizes
    Alias,    // another look at the operand's memory, by the geometry of `value`'s type alone
    Join,     // operands one after another along `dim`
    Gather,   // elements of the last operand, which is in memory, at places that the operands before it hold
  };
  Kind kind;
  int id;
  ir::DType dtype;  // the type of `value` for Buffer, View, Reshape and Alias; else a compute type
  ir::Dims sizes;
  std::vector<TensorNode*> args;
  // The graph's value that this is; how it is stored when it has to be.
  std::optional<ir::ValueRef> value;
  // Without a value: the dtype in which it is stored, where that is not the compute type.
  std::optional<ir::DType> stored_as;
  double real = 0;      // Number of a floating type
  ir::Sym integer = 0;  // Number of another type, bool as 0 or 1
  int dim = 0;
  Prim prim = Prim::Copy;
  ReduceKind reduce = ReduceKind::Sum;
  std::vector<bool> reduced;
  std::vector<ViewDim> view;
  // Gather: which operand holds the index of each dim of the last one; -1: `view` says it.
  std::vector<int> picks;
  std::vector<PlaceCheck> checks;

  int rank() const { return static_cast<int>(sizes.size()); }
  bool computed() const { return elementwise() || kind == Kind::Reduce || kind == Kind::Join; }
  // Each element is made from one of each operand in `aligned()`.
  bool elementwise() const { return kind == Kind::Map || kind == Kind::Gather; }
  std::span<TensorNode* const> aligned() const { return {args.data(), args.size() - (kind == Kind::Gather)}; }
  bool is_view() const { return kind == Kind::View || kind == Kind::Reshape || kind == Kind::Alias; }
};

using Value = TensorNode*;

// Makes nodes. Operands of one primitive are brought to one compute type by the caller (`cast`).
class TensorGraph {
 public:
  TensorGraph() = default;
  TensorGraph(const TensorGraph&) = delete;
  TensorGraph& operator=(const TensorGraph&) = delete;

  Value buffer(ir::ValueRef value, const ir::TensorType& type);
  Value number(double value, ir::DType type);  // of any compute type
  Value number(const ir::Sym& value, ir::DType type);
  Value iota(const ir::Dims& sizes, int dim);
  Value map(Prim prim, std::vector<Value> args);
  Value cast(Value value, ir::DType type);  // to a compute type; the value itself when it has that type already
  // As if stored in `dtype` and read again: rounds where dtype is a 16-bit float.
  Value rounded(Value value, ir::DType dtype);
  Value reduce(ReduceKind kind, Value value, std::vector<bool> dims);
  Value view(Value value, ir::Dims sizes, std::vector<ViewDim> dims);
  Value reshape(Value value, ir::Dims sizes);
  Value alias(Value value, const ir::TensorType& type);
  Value join(std::vector<Value> values, int dim, ir::Dims sizes);
  // `indices` are int64 and broadcast to `sizes`. The checks are the caller's.
  Value gather(std::vector<Value> indices, Value source, ir::Dims sizes, std::vector<int> picks,
               std::vector<ViewDim> dims);

  // Views in terms of the above.
  Value drop_dims(Value value, const std::vector<bool>& dims);  // of size 1
  Value add_dim(Value value, int dim);                          // of size 1
  Value expand(Value value, const ir::Dims& sizes);             // broadcasts from the right

  const std::deque<TensorNode>& nodes() const { return nodes_; }
  std::deque<TensorNode>& nodes() { return nodes_; }

 private:
  Value make(TensorNode::Kind kind, ir::DType dtype, ir::Dims sizes, std::vector<Value> args);
  std::deque<TensorNode> nodes_;
};

// The type in which a node's elements are computed with.
ir::DType computed_as(const TensorNode& node);
// Thrown by what makes nodes when sizes are not known to fit, though they do: the call stays torch's.
struct NotLowered {};

// Sizes after broadcasting. Throws NotLowered where they are not known to be equal.
ir::Dims broadcast_sizes(const std::vector<Value>& values);

// The memory that a node is or looks at: through views, the Buffer or computed node behind them.
const TensorNode* memory_of(const TensorNode* node);

std::string print(const TensorGraph& graph);

}  // namespace graphlift::codegen
