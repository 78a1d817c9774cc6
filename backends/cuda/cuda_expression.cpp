// Owns: see cuda_expression.h. One row per primitive: its text for each class of types.
#include "backends/cuda/cuda_expression.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace graphlift::cuda {
namespace {

using codegen::Prim;
using codegen::ReduceKind;
using ir::DType;

// In a text: $0, $1, $2 are operands, $T is the type, $U the unsigned type in which whole numbers wrap, $f is "f" for
// float32 and nothing for float64. Null: the primitive does not take the class.
struct TextRow {
  Prim prim;
  const char *real, *whole, *truth;
};

constexpr TextRow kTexts[] = {
    {Prim::Copy, "$0", "$0", "$0"},
    {Prim::RoundBf16, "gl_up(gl_to_bf16($0))", nullptr, nullptr},
    {Prim::RoundF16, "gl_up(gl_to_f16($0))", nullptr, nullptr},
    {Prim::Neg, "-$0", "($T)(0 - ($U)$0)", nullptr},
    {Prim::Abs, "fabs$f($0)", "($T)($0 < 0 ? 0 - ($U)$0 : ($U)$0)", "$0"},
    {Prim::Sqrt, "sqrt$f($0)", nullptr, nullptr},
    {Prim::Floor, "floor$f($0)", "$0", "$0"},
    {Prim::Ceil, "ceil$f($0)", "$0", "$0"},
    {Prim::Trunc, "trunc$f($0)", "$0", "$0"},
    {Prim::Round, "rint$f($0)", "$0", "$0"},
    {Prim::Not, nullptr, "($T)~$0", "!$0"},
    {Prim::Exp, "gl_exp($0)", nullptr, nullptr},
    {Prim::Exp2, "exp2$f($0)", nullptr, nullptr},
    {Prim::Expm1, "expm1$f($0)", nullptr, nullptr},
    {Prim::Log, "log$f($0)", nullptr, nullptr},
    {Prim::Log2, "log2$f($0)", nullptr, nullptr},
    {Prim::Log10, "log10$f($0)", nullptr, nullptr},
    {Prim::Log1p, "log1p$f($0)", nullptr, nullptr},
    {Prim::Sin, "sin$f($0)", nullptr, nullptr},
    {Prim::Cos, "cos$f($0)", nullptr, nullptr},
    {Prim::Tan, "tan$f($0)", nullptr, nullptr},
    {Prim::Asin, "asin$f($0)", nullptr, nullptr},
    {Prim::Acos, "acos$f($0)", nullptr, nullptr},
    {Prim::Atan, "atan$f($0)", nullptr, nullptr},
    {Prim::Sinh, "sinh$f($0)", nullptr, nullptr},
    {Prim::Cosh, "cosh$f($0)", nullptr, nullptr},
    {Prim::Tanh, "gl_tanh($0)", nullptr, nullptr},
    {Prim::Asinh, "asinh$f($0)", nullptr, nullptr},
    {Prim::Acosh, "acosh$f($0)", nullptr, nullptr},
    {Prim::Atanh, "atanh$f($0)", nullptr, nullptr},
    {Prim::Erf, "gl_erf($0)", nullptr, nullptr},
    {Prim::Erfc, "erfc$f($0)", nullptr, nullptr},
    {Prim::Sigmoid, "gl_sigmoid($0)", nullptr, nullptr},
    {Prim::Add, "$0 + $1", "($T)(($U)$0 + ($U)$1)", "$0 || $1"},
    {Prim::Sub, "$0 - $1", "($T)(($U)$0 - ($U)$1)", "$0 != $1"},
    {Prim::Mul, "$0 * $1", "($T)(($U)$0 * ($U)$1)", "$0 && $1"},
    {Prim::Div, "gl_div($0, $1)", nullptr, nullptr},
    {Prim::Min, "gl_least($0, $1)", "gl_least($0, $1)", "$0 && $1"},
    {Prim::Max, "gl_most($0, $1)", "gl_most($0, $1)", "$0 || $1"},
    {Prim::And, nullptr, "($T)($0 & $1)", "$0 && $1"},
    {Prim::Or, nullptr, "($T)($0 | $1)", "$0 || $1"},
    {Prim::Xor, nullptr, "($T)($0 ^ $1)", "$0 != $1"},
    {Prim::Fmod, "fmod$f($0, $1)", nullptr, nullptr},
    {Prim::Pow, "pow$f($0, $1)", "gl_power($0, $1)", nullptr},
    {Prim::Atan2, "atan2$f($0, $1)", nullptr, nullptr},
    {Prim::Eq, "$0 == $1", "$0 == $1", "$0 == $1"},
    {Prim::Ne, "$0 != $1", "$0 != $1", "$0 != $1"},
    {Prim::Lt, "$0 < $1", "$0 < $1", "$0 < $1"},
    {Prim::Le, "$0 <= $1", "$0 <= $1", "$0 <= $1"},
    {Prim::Gt, "$0 > $1", "$0 > $1", "$0 > $1"},
    {Prim::Ge, "$0 >= $1", "$0 >= $1", "$0 >= $1"},
    {Prim::Select, "$0 ? $1 : $2", "$0 ? $1 : $2", "$0 ? $1 : $2"},
    {Prim::Uniform, nullptr, "gl_uniform($0, $1, $3, $4, $5, $6)", nullptr},
};

struct TypeRow {
  DType type;
  const char *compute, *memory, *wrapping;
};

constexpr TypeRow kTypes[] = {
    {DType::float32, "float", "float", ""},
    {DType::float64, "double", "double", ""},
    {DType::float16, nullptr, "gl_f16", ""},
    {DType::bfloat16, nullptr, "gl_bf16", ""},
    {DType::int64, "long long", "long long", "unsigned long long"},
    {DType::int32, "int", "int", "unsigned"},
    {DType::int16, "short", "short", "unsigned"},
    {DType::int8, "signed char", "signed char", "unsigned"},
    {DType::uint8, "unsigned char", "unsigned char", "unsigned"},
    {DType::bool_, "bool", "gl_bool", ""},
};

const TypeRow& row(DType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row;
  GL_CHECK(false, "a type that kernels don't know");
}

std::string filled(const char* text, const std::vector<std::string>& args, DType type) {
  std::string made;
  for (const char* c = text; *c; ++c) {
    if (*c != '$') {
      made += *c;
      continue;
    }
    ++c;
    if (*c == 'T')
      made += compute_name(type);
    else if (*c == 'U')
      made += row(type).wrapping;
    else if (*c == 'f')
      made += type == DType::float32 ? "f" : "";
    else
      made += args[static_cast<size_t>(*c - '0')];
  }
  return made;
}

// Floats become uint8 by way of int64, as torch's conversions go.
std::string cast_text(const std::string& x, DType from, DType to) {
  if (to == DType::bool_) return x + " != 0";
  if (to == DType::uint8 && ir::is_floating(from)) return "(unsigned char)(long long)" + x;
  return "(" + std::string(compute_name(to)) + ")" + x;
}

}  // namespace

const char* compute_name(DType type) {
  GL_CHECK(row(type).compute != nullptr, "no compute type");
  return row(type).compute;
}

const char* memory_name(DType type) { return row(type).memory; }

std::string number_text(double value, DType type) {
  char text[64];
  if (type == DType::float32) {
    const float single = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &single, sizeof bits);
    if (std::isfinite(single))
      std::snprintf(text, sizeof text, "(%af)", static_cast<double>(single));
    else
      std::snprintf(text, sizeof text, "__int_as_float(0x%x)", bits);
    return text;
  }
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isfinite(value))
    std::snprintf(text, sizeof text, "(%a)", value);
  else
    std::snprintf(text, sizeof text, "__longlong_as_double(0x%llxLL)", static_cast<unsigned long long>(bits));
  return text;
}

std::string number_text(int64_t value, DType type) {
  if (type == DType::bool_) return value ? "true" : "false";
  if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807LL - 1)";
  const std::string digits = std::to_string(value) + "LL";
  return "(" + std::string(compute_name(type)) + ")" + (value < 0 ? "(" + digits + ")" : digits);
}

std::string primitive_text(Prim prim, const std::vector<std::string>& args, DType operand, DType type) {
  if (prim == Prim::Cast) return cast_text(args[0], operand, type);
  for (const TextRow& row : kTexts) {
    if (row.prim != prim) continue;
    const char* text = ir::is_floating(operand) ? row.real : operand == DType::bool_ ? row.truth : row.whole;
    GL_CHECK(text != nullptr, "a primitive of a type that it does not take: " + std::string(codegen::row(prim).name));
    return filled(text, args, operand);
  }
  GL_CHECK(false, "a primitive without text: " + std::string(codegen::row(prim).name));
}

std::string identity_text(ReduceKind kind, DType type) {
  const bool real = ir::is_floating(type), low = kind == ReduceKind::Max;
  switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Any:
      return real ? number_text(0.0, type) : number_text(int64_t{0}, type);
    case ReduceKind::Prod:
    case ReduceKind::All:
      return real ? number_text(1.0, type) : number_text(int64_t{1}, type);
    case ReduceKind::Min:
    case ReduceKind::Max:
      break;
  }
  if (real) return number_text(low ? -INFINITY : INFINITY, type);
  if (type == DType::bool_) return low ? "false" : "true";
  if (type == DType::uint8) return number_text(int64_t{low ? 0 : 255}, type);
  const auto largest = static_cast<int64_t>((uint64_t{1} << (ir::bytes(type) * 8 - 1)) - 1);
  return number_text(low ? -largest - 1 : largest, type);
}

std::string combine_name(ReduceKind kind) { return "gl_" + std::string(codegen::name(kind)); }

}  // namespace graphlift::cuda
