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

#include "ir/graph.h"
#include "ir/sym.h"
#include "ir/type.h"

namespace graphlift::ops {

// An argument as shape rules see it: tensors as types. Order and defaults are the schema's, all arguments present. A
// number in a tensor's place is a wrapped number (`x * 2.0` is mul.Tensor with a double): it takes part in type
// promotion as Python's do.
struct ShapeArg
    : std::variant<ir::None, const ir::TensorType*, ir::Sym, double, bool, std::complex<double>, std::string, ir::DType,
                   ir::Device, ir::Layout, ir::MemoryFormat, std::vector<ShapeArg>> {
  using variant::variant;
};

struct ShapeCall {
  std::span<const ShapeArg> args;
  ir::ShapeEnv& env;
  // Filled by the rule, flat: a list of tensors gives one entry per tensor, an undefined tensor and a non-tensor give
  // nullopt. What is in it after a rule said false means nothing.
  std::vector<std::optional<ir::TensorType>>& results;
  std::vector<ir::Sym> int_results = {};         // results of type int, in order
  ir::DType default_dtype = ir::DType::float32;  // torch.get_default_dtype()
  // The index that a device without one gets. -1: it stays without, and the caller fills it in.
  int8_t current_device = -1;

  bool is_tensor(size_t i) const;
  bool is_number(size_t i) const;  // int, float, bool or complex
  bool none(size_t i) const;
  const ir::TensorType& tensor(size_t i) const;  // precondition: a tensor
  const ir::TensorType* optional_tensor(size_t i) const;
  ir::Sym sym(size_t i) const;      // int or symbolic int
  int64_t integer(size_t i) const;  // specializes a symbolic int
  bool boolean(size_t i) const;
  double real(size_t i) const;
  ir::Dims syms(size_t i) const;  // list of ints
  std::vector<int64_t> integers(size_t i) const;
  std::vector<const ir::TensorType*> tensors(size_t i) const;  // list of tensors (none entries are null)
  std::optional<ir::DType> dtype(size_t i) const;
  std::optional<ir::Device> device(size_t i) const;
  std::optional<int8_t> memory_format(size_t i) const;
  std::vector<bool> booleans(size_t i) const;
};

// False: this call is outside the rule (torch's meta kernel decides on specialized sizes). A rule never guesses.
// Strides are eager's own, for the device of the inputs.
using ShapeRule = bool (*)(ShapeCall& call);

struct OpRow {
  std::string_view name;  // "aten::add.Tensor"
  ShapeRule shape;
};

// Null when there is no row.
const OpRow* find_op(ir::Op op);
std::span<const OpRow* const> all_ops();

}  // namespace graphlift::ops
