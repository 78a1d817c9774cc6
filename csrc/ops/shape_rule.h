// Owns: the interface of shape rules: result types of an aten call from its arguments' types, symbolic sizes included.
// Must not: know torch. Families of rows live in ops/<family>.cpp; the table joins them.
#pragma once

#include <complex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/sym.h"
#include "ir/graph.h"
#include "ir/type.h"

namespace graphlift::ops {

// An argument as shape rules see it: tensors as types. Order and defaults are the schema's, all arguments present.
struct ShapeArg : std::variant<ir::None, const ir::TensorType*, ir::Sym, double, bool, std::complex<double>, std::string,
                               ir::DType, ir::Device, ir::Layout, ir::MemoryFormat, std::vector<ShapeArg>> {
  using variant::variant;
};

struct ShapeCall {
  std::span<const ShapeArg> args;
  ir::ShapeEnv& env;
  std::vector<std::optional<ir::TensorType>>& results;  // filled by the rule

  bool none(size_t i) const;
  const ir::TensorType& tensor(size_t i) const;        // precondition: a tensor
  const ir::TensorType* optional_tensor(size_t i) const;
  ir::Sym sym(size_t i) const;                         // int or symbolic int
  int64_t integer(size_t i) const;                     // specializes a symbolic int
  bool boolean(size_t i) const;
  double real(size_t i) const;
  ir::Dims syms(size_t i) const;                       // list of ints
  std::vector<int64_t> integers(size_t i) const;
  std::vector<const ir::TensorType*> tensors(size_t i) const;  // list of tensors (none entries are null)
  std::optional<ir::DType> dtype(size_t i) const;
};

// False: this call is outside the rule (torch's meta kernel decides on specialized sizes). A rule never guesses. Strides are
// eager's own, for the device of the inputs.
using ShapeRule = bool (*)(ShapeCall& call);

struct OpRow {
  std::string_view name;  // "aten::add.Tensor"
  ShapeRule shape;
};

// Null when there is no row.
const OpRow* find_op(ir::Op op);
std::span<const OpRow* const> all_ops();

}  // namespace graphlift::ops
