// Owns: rows of _foreach_ operators: the single operator's rule, item by item. Must not: hold rules of its own for one
// tensor.
#include <algorithm>

#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

// A string as a template argument.
template <size_t N>
struct Name {
  constexpr Name(const char (&text)[N]) { std::copy_n(text, N, value); }  // NOLINT: implicit on purpose
  char value[N];
};

using List = std::vector<ShapeArg>;

const List* as_list(const ShapeArg& arg) { return std::get_if<List>(static_cast<const ShapeArg::variant*>(&arg)); }

// Calls `rule` once per item: lists give their item, everything else stays; `more` follows.
bool for_each_item(ShapeCall& call, const OpRow* row, std::span<const ShapeArg> more) {
  size_t items = 0;
  for (const ShapeArg& arg : call.args) {
    const List* list = as_list(arg);
    if (!list) continue;
    if (items != 0 && list->size() != items) return false;
    items = list->size();
  }
  if (!row || items == 0) return false;
  for (size_t i = 0; i < items; ++i) {
    List args;
    for (const ShapeArg& arg : call.args) args.push_back(as_list(arg) ? (*as_list(arg))[i] : arg);
    args.insert(args.end(), more.begin(), more.end());
    std::vector<std::optional<ir::TensorType>> results;
    ShapeCall single{args, call.env, results, {}, call.default_dtype, call.current_device};
    if (!row->shape(single)) return false;
    for (auto& result : results) call.results.push_back(std::move(result));
  }
  return true;
}

// Arguments that the single operator has in addition.
enum class More { Nothing, Alpha };

std::vector<ShapeArg> arguments(More more) {
  if (more == More::Alpha) return {ir::Sym(1)};
  return {};
}

template <Name Single, More M = More::Nothing>
bool each(ShapeCall& call) {
  static const OpRow* row = find_op(ir::Op(Single.value));
  static const std::vector<ShapeArg> more = arguments(M);
  return for_each_item(call, row, more);
}

// In place nothing is returned.
template <Name Single, More M = More::Nothing>
bool each_in_place(ShapeCall& call) {
  if (!each<Single, M>(call)) return false;
  call.results.clear();
  return true;
}

// self, ord, dtype: a number per tensor.
bool norm(ShapeCall& call) {
  for (const ir::TensorType* type : call.tensors(0)) {
    const ir::DType dtype = call.dtype(2).value_or(type->dtype);
    if (!ir::is_floating(dtype)) return false;
    give_contiguous(call, dtype, type->device, {});
  }
  return true;
}

// CUDA keeps the layout of exponents, unlike the single operator.
bool powers_of_number(ShapeCall& call) {
  for (const ir::TensorType* type : call.tensors(1))
    if (!type || !type->device.is_cpu()) return false;
  return each<"aten::pow.Scalar">(call);
}

#define EACH(name, overload, single, single_overload, ...)                                                   \
  GL_OP("_foreach_" name, overload, (each<"aten::" single "." single_overload __VA_OPT__(, ) __VA_ARGS__>)), \
      GL_OP("_foreach_" name "_", overload,                                                                  \
            (each_in_place<"aten::" single "_." single_overload __VA_OPT__(, ) __VA_ARGS__>))
#define UNARY(name) EACH(name, "default", name, "default")
#define SCALARS(name, single, single_overload, ...)                         \
  EACH(name, "Scalar", single, single_overload __VA_OPT__(, ) __VA_ARGS__), \
      EACH(name, "ScalarList", single, single_overload __VA_OPT__(, ) __VA_ARGS__)

constexpr OpRow kRows[] = {
    UNARY("abs"),
    UNARY("acos"),
    UNARY("asin"),
    UNARY("atan"),
    UNARY("ceil"),
    UNARY("cos"),
    UNARY("cosh"),
    UNARY("erf"),
    UNARY("erfc"),
    UNARY("exp"),
    UNARY("expm1"),
    UNARY("floor"),
    UNARY("frac"),
    UNARY("lgamma"),
    UNARY("log"),
    UNARY("log10"),
    UNARY("log1p"),
    UNARY("log2"),
    UNARY("neg"),
    UNARY("reciprocal"),
    UNARY("round"),
    UNARY("rsqrt"),
    UNARY("sigmoid"),
    UNARY("sign"),
    UNARY("sin"),
    UNARY("sinh"),
    UNARY("sqrt"),
    UNARY("tan"),
    UNARY("tanh"),
    UNARY("trunc"),
    UNARY("zero"),
    EACH("add", "List", "add", "Tensor"),
    EACH("add", "Tensor", "add", "Tensor"),
    SCALARS("add", "add", "Scalar", More::Alpha),
    EACH("sub", "List", "sub", "Tensor"),
    SCALARS("sub", "sub", "Scalar", More::Alpha),
    EACH("mul", "List", "mul", "Tensor"),
    EACH("mul", "Tensor", "mul", "Tensor"),
    SCALARS("mul", "mul", "Scalar"),
    EACH("div", "List", "div", "Tensor"),
    EACH("div", "Tensor", "div", "Tensor"),
    SCALARS("div", "div", "Scalar"),
    EACH("clamp_min", "List", "clamp_min", "Tensor"),
    SCALARS("clamp_min", "clamp_min", "default"),
    EACH("clamp_max", "List", "clamp_max", "Tensor"),
    SCALARS("clamp_max", "clamp_max", "default"),
    EACH("maximum", "List", "clamp_min", "Tensor"),
    SCALARS("maximum", "clamp_min", "default"),
    EACH("minimum", "List", "clamp_max", "Tensor"),
    SCALARS("minimum", "clamp_max", "default"),
    SCALARS("addcmul", "addcmul", "default"),
    EACH("addcmul", "Tensor", "addcmul", "default"),
    SCALARS("addcdiv", "addcdiv", "default"),
    EACH("addcdiv", "Tensor", "addcdiv", "default"),
    EACH("lerp", "List", "lerp", "Tensor"),
    SCALARS("lerp", "lerp", "Scalar"),
    GL_OP("_foreach_pow", "List", each<"aten::pow.Tensor_Tensor">),
    GL_OP("_foreach_pow", "Scalar", each<"aten::pow.Tensor_Scalar">),
    GL_OP("_foreach_pow", "ScalarList", each<"aten::pow.Tensor_Scalar">),
    GL_OP("_foreach_pow", "ScalarAndTensor", powers_of_number),
    GL_OP("_foreach_pow_", "List", each_in_place<"aten::pow_.Tensor">),
    GL_OP("_foreach_pow_", "Scalar", each_in_place<"aten::pow_.Scalar">),
    GL_OP("_foreach_pow_", "ScalarList", each_in_place<"aten::pow_.Scalar">),
    GL_OP("_foreach_copy", "default", each<"aten::copy.default">),
    GL_OP("_foreach_copy_", "default", each_in_place<"aten::copy_.default">),
    GL_OP("_foreach_max", "default", each<"aten::max.default">),
    GL_OP("_foreach_norm", "Scalar", norm),
};

}  // namespace

std::span<const OpRow> foreach_rows() { return kRows; }

}  // namespace graphlift::ops
