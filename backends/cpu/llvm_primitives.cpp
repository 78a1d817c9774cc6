// Owns: see llvm_primitives.h. One row per primitive and class of types: an instruction, an intrinsic, or a function.
#include "backends/cpu/llvm_primitives.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace graphlift::cpu {
namespace {

using codegen::Prim;
using codegen::ReduceKind;
using ir::DType;

// `real`, `whole` (signed), `natural` (uint8) and `truth` are instructions with two operands; with a leading '@' an
// intrinsic of one or two operands.
struct InstructionRow {
  Prim prim;
  const char* real;
  const char* whole;
  const char* natural;
  const char* truth;
};

constexpr InstructionRow kInstructions[] = {
    {Prim::Add, "fadd", "add", "add", "or"},
    {Prim::Sub, "fsub", "sub", "sub", "xor"},
    {Prim::Mul, "fmul", "mul", "mul", "and"},
    {Prim::Div, "fdiv", nullptr, nullptr, nullptr},
    {Prim::Min, nullptr, "@smin", "@umin", "and"},
    {Prim::Max, nullptr, "@smax", "@umax", "or"},
    {Prim::And, nullptr, "and", "and", "and"},
    {Prim::Or, nullptr, "or", "or", "or"},
    {Prim::Xor, nullptr, "xor", "xor", "xor"},
    {Prim::Sqrt, "@sqrt", nullptr, nullptr, nullptr},
    {Prim::Floor, "@floor", nullptr, nullptr, nullptr},
    {Prim::Ceil, "@ceil", nullptr, nullptr, nullptr},
    {Prim::Trunc, "@trunc", nullptr, nullptr, nullptr},
    {Prim::Round, "@roundeven", nullptr, nullptr, nullptr},
};

struct CompareRow {
  Prim prim;
  const char *real, *whole, *natural;
};

constexpr CompareRow kCompares[] = {
    {Prim::Eq, "fcmp oeq", "icmp eq", "icmp eq"},   {Prim::Ne, "fcmp une", "icmp ne", "icmp ne"},
    {Prim::Lt, "fcmp olt", "icmp slt", "icmp ult"}, {Prim::Le, "fcmp ole", "icmp sle", "icmp ule"},
    {Prim::Gt, "fcmp ogt", "icmp sgt", "icmp ugt"}, {Prim::Ge, "fcmp oge", "icmp sge", "icmp uge"},
};

// Functions of the math library, and the accuracy in the names of their vector forms.
struct FunctionRow {
  Prim prim;
  const char *name, *accuracy;
  Reg (*float32)(Code&, const Reg&);
};

constexpr FunctionRow kFunctions[] = {
    {Prim::Exp, "exp", "_u10", emit_exp},    {Prim::Exp2, "exp2", "_u10", nullptr},
    {Prim::Expm1, "expm1", "_u10", nullptr}, {Prim::Log, "log", "_u10", emit_log},
    {Prim::Log2, "log2", "_u10", nullptr},   {Prim::Log10, "log10", "_u10", nullptr},
    {Prim::Log1p, "log1p", "_u10", nullptr}, {Prim::Sin, "sin", "_u10", nullptr},
    {Prim::Cos, "cos", "_u10", nullptr},     {Prim::Tan, "tan", "_u10", nullptr},
    {Prim::Asin, "asin", "_u10", nullptr},   {Prim::Acos, "acos", "_u10", nullptr},
    {Prim::Atan, "atan", "_u10", nullptr},   {Prim::Sinh, "sinh", "_u10", nullptr},
    {Prim::Cosh, "cosh", "_u10", nullptr},   {Prim::Tanh, "tanh", "_u10", emit_tanh},
    {Prim::Asinh, "asinh", "_u10", nullptr}, {Prim::Acosh, "acosh", "_u10", nullptr},
    {Prim::Atanh, "atanh", "_u10", nullptr}, {Prim::Erf, "erf", "_u10", emit_erf},
    {Prim::Erfc, "erfc", "_u15", nullptr},   {Prim::Fmod, "fmod", "", nullptr},
    {Prim::Pow, "pow", "_u10", nullptr},     {Prim::Atan2, "atan2", "_u10", nullptr},
};

template <class Row, size_t n>
const Row* find(const Row (&rows)[n], Prim prim) {
  for (const Row& row : rows)
    if (row.prim == prim) return &row;
  return nullptr;
}

Reg emit_instruction(Code& code, const InstructionRow& row, const std::vector<Reg>& args) {
  const DType type = args[0].type;
  const char* name = ir::is_floating(type)  ? row.real
                     : type == DType::bool_ ? row.truth
                     : type == DType::uint8 ? row.natural
                                            : row.whole;
  GL_CHECK(name != nullptr, "a primitive of a type that it does not take");
  return name[0] == '@' ? code.intrinsic(name + 1, args) : code.binary(name, args[0], args[1]);
}

// Of floats: NaN in either stays, and `a` does where they are equal, as zeros of two signs are: so does what eager
// bounds by a number. One instruction on x86, which gives `a` where either is NaN; whether b is does not wait for it,
// nor is it asked of a number.
Reg emit_extreme(Code& code, Prim prim, const Reg& a, const Reg& b) {
  const Reg beyond = code.compare(prim == Prim::Max ? "fcmp ogt" : "fcmp olt", b, a);
  return code.select(code.compare("fcmp uno", b, b), b, code.select(beyond, b, a));
}

Reg emit_compare(Code& code, const CompareRow& row, const Reg& a, const Reg& b) {
  const bool natural = a.type == DType::uint8 || a.type == DType::bool_;
  return code.compare(ir::is_floating(a.type) ? row.real : natural ? row.natural : row.whole, a, b);
}

Reg emit_by_lane(Code& code, const std::string& name, const std::vector<Reg>& args) {
  const int lanes = args[0].lanes;
  if (lanes == 1) return code.call(name, args);
  Reg result{"poison", args[0].type, lanes};
  for (int lane = 0; lane < lanes; ++lane) {
    std::vector<Reg> scalars;
    for (const Reg& arg : args) scalars.push_back(code.part(arg, lane, 1));
    const Reg one = code.call(name, scalars);
    result = code.define(result.type, lanes,
                         "insertelement " + Code::type(result) + " " + result.text + ", " + Code::type(one) + " " +
                             one.text + ", i64 " + std::to_string(lane));
  }
  return result;
}

Reg emit_function(Code& code, const FunctionRow& row, const std::vector<Reg>& args) {
  const bool single = args[0].type == DType::float32;
  if (single && row.float32) return row.float32(code, args[0]);
  const int native = code.target().vector_bytes / (single ? 4 : 8);
  const std::string vector =
      std::string("Sleef_") + row.name + (single ? "f" : "d") + std::to_string(native) + row.accuracy;
  if (args[0].lanes > 1 && code.target().functions.contains(vector))
    return code.by_registers(args, native, [&](const std::vector<Reg>& part) { return code.call(vector, part); });
  return emit_by_lane(code, std::string(row.name) + (single ? "f" : ""), args);
}

bool is_unsigned(DType type) { return type == DType::uint8 || type == DType::bool_; }

Reg emit_cast(Code& code, const Reg& x, DType to) {
  const DType from = x.type;
  if (from == to) return x;
  if (to == DType::bool_) {
    const Reg zero = code.number(0, from, x.lanes);
    return code.compare(ir::is_floating(from) ? "fcmp une" : "icmp ne", x, zero);
  }
  if (ir::is_floating(from) && ir::is_floating(to))
    return code.convert(to == DType::float64 ? "fpext" : "fptrunc", x, to);
  if (ir::is_floating(to)) return code.convert(is_unsigned(from) ? "uitofp" : "sitofp", x, to);
  if (!ir::is_floating(from)) {
    if (ir::bytes(from) == ir::bytes(to) && from != DType::bool_) return {x.text, to, x.lanes};
    if (ir::bytes(from) > ir::bytes(to)) return code.convert("trunc", x, to);
    return code.convert(is_unsigned(from) ? "zext" : "sext", x, to);
  }
  // Small whole types by way of int32, as the processor's conversions wrap.
  const DType wide = to == DType::int64 ? to : DType::int32;
  return emit_cast(code, code.convert("fptosi", x, wide), to);
}

Reg emit_rounded(Code& code, const Reg& x, Prim prim) {
  if (prim == Prim::RoundF16) return code.convert("fpext", code.convert("fptrunc", x, DType::float16), DType::float32);
  const int lanes = x.lanes;
  auto ints = [&](int64_t value) { return code.integer(value, DType::int32, lanes); };
  const Reg raw = code.convert("bitcast", x, DType::int32);
  const Reg odd = code.binary("and", code.binary("lshr", raw, ints(16)), ints(1));
  const Reg sum = code.binary("add", raw, code.binary("add", odd, ints(0x7fff)));
  const Reg kept =
      code.convert("bitcast", code.binary("and", sum, ints(static_cast<int32_t>(0xffff0000))), DType::float32);
  return code.select(code.compare("fcmp uno", x, x), x, kept);
}

Reg emit_other(Code& code, Prim prim, const std::vector<Reg>& args, DType type) {
  const Reg& x = args[0];
  const bool real = ir::is_floating(x.type);
  switch (prim) {
    case Prim::Copy:
      return x;
    case Prim::Cast:
      return emit_cast(code, x, type);
    case Prim::RoundBf16:
    case Prim::RoundF16:
      return emit_rounded(code, x, prim);
    case Prim::Neg:
      if (real) return code.define(x.type, x.lanes, "fneg " + Code::type(x) + " " + x.text);
      return code.binary("sub", code.integer(0, x.type, x.lanes), x);
    case Prim::Abs:
      if (real) return code.intrinsic("fabs", {x});
      return code.select(code.compare("icmp slt", x, code.integer(0, x.type, x.lanes)),
                         code.binary("sub", code.integer(0, x.type, x.lanes), x), x);
    case Prim::Not:
      return code.binary("xor", x, code.integer(x.type == DType::bool_ ? 1 : -1, x.type, x.lanes));
    case Prim::Sigmoid: {
      if (x.type == DType::float32) return emit_sigmoid(code, x);
      const Reg negative = code.define(x.type, x.lanes, "fneg " + Code::type(x) + " " + x.text);
      const Reg one = code.real(1, x.type, x.lanes);
      return code.binary("fdiv", one,
                         code.binary("fadd", one, emit_function(code, *find(kFunctions, Prim::Exp), {negative})));
    }
    case Prim::Select:
      return code.select(args[0], args[1], args[2]);
    default:
      GL_CHECK(false, "a primitive without code: " + std::string(codegen::row(prim).name));
  }
}

}  // namespace

Reg emit_primitive(Code& code, Prim prim, const std::vector<Reg>& args, DType type) {
  if ((prim == Prim::Max || prim == Prim::Min) && ir::is_floating(type))
    return emit_extreme(code, prim, args[0], args[1]);
  if (const auto* row = find(kInstructions, prim)) return emit_instruction(code, *row, args);
  if (const auto* row = find(kCompares, prim)) return emit_compare(code, *row, args[0], args[1]);
  if (const auto* row = find(kFunctions, prim)) return emit_function(code, *row, args);
  return emit_other(code, prim, args, type);
}

Reg emit_identity(Code& code, ReduceKind kind, DType type, int lanes) {
  const bool real = ir::is_floating(type);
  const bool low = kind == ReduceKind::Max;
  switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::Any:
      return code.number(0, type, lanes);
    case ReduceKind::Prod:
    case ReduceKind::All:
      return code.number(1, type, lanes);
    case ReduceKind::Min:
    case ReduceKind::Max:
      break;
  }
  if (real) return code.real(low ? -INFINITY : INFINITY, type, lanes);
  if (is_unsigned(type)) return code.integer(low ? 0 : type == DType::bool_ ? 1 : 255, type, lanes);
  const int bits = ir::bytes(type) * 8;
  const int64_t largest = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  return code.integer(low ? -largest - 1 : largest, type, lanes);
}

// By halves, so that sums stay accurate and the order is the same for all targets of one width.
Reg emit_horizontal(Code& code, ReduceKind kind, const Reg& vector) {
  Reg value = vector;
  while (value.lanes > 1) {
    const int half = value.lanes / 2;
    const std::vector<Reg> halves{code.part(value, 0, half), code.part(value, half, half)};
    value = emit_primitive(code, codegen::combiner(kind), halves, value.type);
  }
  return value;
}

}  // namespace graphlift::cpu
