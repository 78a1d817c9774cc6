// Owns: what lowering rows are written with, and the table of all rows.
#include "backends/codegen/lower_rule.h"

#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "ops/promote.h"

namespace graphlift::codegen {

Expr apply(Prim prim, const Expr& a) { return {a.graph(), a.graph()->map(prim, {a.value()})}; }

Expr apply(Prim prim, const Expr& a, const Expr& b) {
  return {a.graph(), a.graph()->map(prim, {a.value(), b.value()})};
}

Expr select(const Expr& condition, const Expr& yes, const Expr& no) {
  return {yes.graph(), yes.graph()->map(Prim::Select, {condition.value(), yes.value(), no.value()})};
}

ir::Sym count(const Expr& x, const std::vector<bool>& dims) {
  ir::Sym elements = 1;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i]) elements = elements * x.sizes()[i];
  return elements;
}

Expr sum(const Expr& a, const std::vector<bool>& dims) {
  return {a.graph(), a.graph()->reduce(ReduceKind::Sum, a.value(), dims)};
}

const ir::TensorType& LowerCall::type(size_t i) const { return ir::type_of(*node.args[i].value()); }

Expr LowerCall::operand(size_t i, ir::DType dtype) const {
  const auto type = compute_type(dtype);
  GL_CHECK(type.has_value(), "an operand of a type that kernels don't compute with");
  const ir::Arg& arg = node.args[i];
  if (arg.value()) return tensor(i).cast(*type);
  if (const ir::Sym* number = arg.sym()) return {&graph, graph.number(*number, *type)};
  return {&graph, graph.number(real(i), *type)};
}

// Whole negative numbers wrap around in unsigned types; floats have infinities and NaN.
bool LowerCall::fits(size_t i, ir::DType dtype) const {
  const ir::Sym* whole = node.args[i].sym();
  const auto* given = std::get_if<double>(&node.args[i]);
  if ((!whole && !given) || dtype == ir::DType::bool_ || dtype == ir::DType::float64) return true;
  if (whole && !whole->is_constant()) return ir::bytes(dtype) >= (ir::is_floating(dtype) ? 4 : 8);
  const double value = whole ? static_cast<double>(whole->constant()) : *given;
  if (ir::is_floating(dtype)) {
    const double most = dtype == ir::DType::float16    ? 65504
                        : dtype == ir::DType::bfloat16 ? 0x1.fep127
                                                       : 0x1.fffffep127;
    return !std::isfinite(value) || std::abs(value) <= most;
  }
  const int bits = 8 * ir::bytes(dtype);
  if (ir::category(dtype) == ir::DTypeCategory::Int) {
    const double half = std::ldexp(1.0, bits - 1);
    return value >= -half && value <= (bits == 64 ? half : half - 1);
  }
  const double most = std::ldexp(1.0, bits) - 1;
  return value >= (whole ? -most : 0) && value <= most;
}

double LowerCall::real(size_t i) const {
  const ir::Arg& arg = node.args[i];
  if (const auto* number = std::get_if<double>(&arg)) return *number;
  if (const auto* number = std::get_if<bool>(&arg)) return *number ? 1 : 0;
  GL_CHECK(arg.sym() && arg.sym()->is_constant(), "an argument is not a number");
  return static_cast<double>(arg.sym()->constant());
}

ir::Dims LowerCall::syms(size_t i) const {
  ir::Dims values;
  if (const ir::Sym* one = node.args[i].sym()) return {*one};
  if (const ir::ArgList* list = node.args[i].list())
    for (const ir::Arg& item : *list) values.push_back(*item.sym());
  return values;
}

std::vector<bool> LowerCall::dims(size_t i, int rank) const {
  const ir::Dims named = syms(i);
  std::vector<bool> flags(static_cast<size_t>(rank), named.empty());
  for (const ir::Sym& dim : named) {
    const int64_t at = dim.constant() < 0 ? dim.constant() + rank : dim.constant();
    if (rank > 0) flags.at(static_cast<size_t>(at)) = true;
  }
  return flags;
}

int LowerCall::dim(size_t i, int rank) const {
  const int64_t named = integer(i);
  return static_cast<int>(named < 0 ? named + rank : named);
}

std::optional<ir::DType> LowerCall::common(std::initializer_list<size_t> args) const {
  ops::ResultType result(ir::DType::float32);
  for (size_t i : args) {
    const ir::Arg& arg = node.args[i];
    if (arg.value())
      result.add(type(i));
    else if (const ir::Sym* number = arg.sym())
      result.add_number(*number);
    else if (const auto* real = std::get_if<double>(&arg))
      result.add_number(*real);
    else if (const auto* flag = std::get_if<bool>(&arg))
      result.add_number(*flag);
    else
      return std::nullopt;
  }
  const auto dtype = result.get();
  return dtype && compute_type(*dtype) ? dtype : std::nullopt;
}

namespace {

const std::unordered_map<std::string_view, const LowerRow*>& table() {
  static const auto* table = [] {
    auto* made = new std::unordered_map<std::string_view, const LowerRow*>;
#define FAMILY(family)                                \
  for (const LowerRow& row : lower_##family##_rows()) \
    GL_CHECK(made->emplace(row.name, &row).second, "two rows of one name");
    GRAPHLIFT_LOWER_FAMILIES(FAMILY)
#undef FAMILY
    return made;
  }();
  return *table;
}

}  // namespace

const LowerRow* find_lowering(ir::Op op) {
  const auto found = table().find(op.str());
  return found == table().end() ? nullptr : found->second;
}

std::vector<const LowerRow*> all_lowerings() {
  std::vector<const LowerRow*> rows;
  for (const auto& [name, row] : table()) rows.push_back(row);
  return rows;
}

}  // namespace graphlift::codegen
