// Owns: see llvm_code.h.
#include "backends/cpu/llvm_code.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace graphlift::cpu {

using ir::DType;

namespace {

struct TypeRow {
  DType dtype;
  const char* scalar;
  const char* suffix;  // in names of intrinsics
};

// float16 and bfloat16 as they are in memory.
constexpr TypeRow kTypes[] = {
    {DType::float32, "float", "f32"}, {DType::float64, "double", "f64"}, {DType::int64, "i64", "i64"},
    {DType::int32, "i32", "i32"},     {DType::int16, "i16", "i16"},      {DType::int8, "i8", "i8"},
    {DType::uint8, "i8", "i8"},       {DType::bool_, "i1", "i1"},        {DType::float16, "half", "f16"},
    {DType::bfloat16, "i16", "i16"},
};

const TypeRow& row(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row;
  GL_CHECK(false, "a type that kernels don't compute with");
}

std::string suffix(DType type, int lanes) { return (lanes == 1 ? "" : "v" + std::to_string(lanes)) + row(type).suffix; }

std::string real_text(double value, DType type) {
  if (type == DType::float32) value = static_cast<double>(static_cast<float>(value));
  char text[32];
  std::snprintf(text, sizeof text, "0x%016llX", static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
  return text;
}

}  // namespace

std::string Code::scalar_type(DType type) { return row(type).scalar; }

std::string Code::type(DType type, int lanes) {
  return lanes == 1 ? scalar_type(type) : "<" + std::to_string(lanes) + " x " + scalar_type(type) + ">";
}

Reg Code::define(DType type, int lanes, const std::string& text) {
  const std::string name = "%" + fresh();
  line(name + " = " + text);
  return {name, type, lanes};
}

Reg Code::pure(DType type, int lanes, const std::string& text) {
  const auto [found, is_new] = known_.emplace(text, "");
  if (!is_new) return {found->second, type, lanes};
  const Reg made = define(type, lanes, text);
  found->second = made.text;
  known_order_.push_back(text);
  return made;
}

void Code::leave_block(size_t mark) {
  for (; known_order_.size() > mark; known_order_.pop_back()) known_.erase(known_order_.back());
}

Reg Code::real(double value, DType type, int lanes) {
  const std::string text = real_text(value, type);
  return {lanes == 1 ? text : "splat (" + scalar_type(type) + " " + text + ")", type, lanes};
}

Reg Code::integer(int64_t value, DType type, int lanes) {
  std::string text = std::to_string(value);
  if (type == DType::bool_) text = value ? "true" : "false";
  if (type == DType::uint8) text = std::to_string(static_cast<int>(static_cast<int8_t>(value)));
  return {lanes == 1 ? text : "splat (" + scalar_type(type) + " " + text + ")", type, lanes};
}

Reg Code::number(double value, DType type, int lanes) {
  return ir::is_floating(type) ? real(value, type, lanes) : integer(static_cast<int64_t>(value), type, lanes);
}

Reg Code::bits(uint64_t value, DType type, int lanes) {
  const auto signed_value =
      type == DType::int32 ? static_cast<int64_t>(static_cast<int32_t>(value)) : static_cast<int64_t>(value);
  return integer(signed_value, type, lanes);
}

Reg Code::binary(std::string_view instruction, const Reg& a, const Reg& b) {
  GL_CHECK(a.type == b.type && a.lanes == b.lanes, "operands of two types");
  return pure(a.type, a.lanes, std::string(instruction) + " " + type(a) + " " + a.text + ", " + b.text);
}

Reg Code::compare(std::string_view predicate, const Reg& a, const Reg& b) {
  return pure(DType::bool_, a.lanes, std::string(predicate) + " " + type(a) + " " + a.text + ", " + b.text);
}

Reg Code::convert(std::string_view instruction, const Reg& a, DType to) {
  return pure(to, a.lanes, std::string(instruction) + " " + type(a) + " " + a.text + " to " + type(to, a.lanes));
}

Reg Code::select(const Reg& condition, const Reg& yes, const Reg& no) {
  return pure(yes.type, yes.lanes,
              "select " + type(condition) + " " + condition.text + ", " + type(yes) + " " + yes.text + ", " + type(no) +
                  " " + no.text);
}

Reg Code::intrinsic(const std::string& name, const std::vector<Reg>& args, std::string_view flags) {
  const Reg& first = args.front();
  const std::string function = "@llvm." + name + "." + suffix(first.type, first.lanes);
  std::string types, values;
  for (const Reg& arg : args) {
    types += (types.empty() ? "" : ", ") + type(arg);
    values += (values.empty() ? "" : ", ") + type(arg) + " " + arg.text;
  }
  declare("declare " + type(first) + " " + function + "(" + types + ")");
  return pure(
      first.type, first.lanes,
      "call " + std::string(flags) + (flags.empty() ? "" : " ") + type(first) + " " + function + "(" + values + ")");
}

Reg Code::call(const std::string& function, const std::vector<Reg>& args) {
  const Reg& first = args.front();
  std::string types, values;
  for (const Reg& arg : args) {
    types += (types.empty() ? "" : ", ") + type(arg);
    values += (values.empty() ? "" : ", ") + type(arg) + " " + arg.text;
  }
  declare("declare " + type(first) + " @" + function + "(" + types + ")");
  return define(first.type, first.lanes, "call " + type(first) + " @" + function + "(" + values + ")");
}

Reg Code::splat(const Reg& scalar, int lanes) {
  if (scalar.lanes == lanes) return scalar;
  GL_CHECK(scalar.lanes == 1, "a splat of a vector");
  const bool constant = !scalar.text.starts_with('%');
  if (constant) return {"splat (" + type(scalar) + " " + scalar.text + ")", scalar.type, lanes};
  const std::string vector = type(scalar.type, lanes);
  const Reg one =
      pure(scalar.type, lanes, "insertelement " + vector + " poison, " + type(scalar) + " " + scalar.text + ", i64 0");
  return pure(scalar.type, lanes,
              "shufflevector " + vector + " " + one.text + ", " + vector + " poison, <" + std::to_string(lanes) +
                  " x i32> zeroinitializer");
}

Reg Code::part(const Reg& vector, int from, int lanes) {
  if (vector.lanes == lanes) return vector;
  if (lanes == 1)
    return pure(vector.type, 1, "extractelement " + type(vector) + " " + vector.text + ", i64 " + std::to_string(from));
  std::string order;
  for (int i = 0; i < lanes; ++i) order += (i ? ", i32 " : "i32 ") + std::to_string(from + i);
  return pure(vector.type, lanes,
              "shufflevector " + type(vector) + " " + vector.text + ", " + type(vector) + " poison, <" +
                  std::to_string(lanes) + " x i32> <" + order + ">");
}

Reg Code::joined(const std::vector<Reg>& parts) {
  std::vector<Reg> level = parts;
  while (level.size() > 1) {
    std::vector<Reg> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2) {
      const int lanes = level[i].lanes * 2;
      std::string order;
      for (int lane = 0; lane < lanes; ++lane) order += (lane ? ", i32 " : "i32 ") + std::to_string(lane);
      next.push_back(pure(level[i].type, lanes,
                          "shufflevector " + type(level[i]) + " " + level[i].text + ", " + type(level[i]) + " " +
                              level[i + 1].text + ", <" + std::to_string(lanes) + " x i32> <" + order + ">"));
    }
    level = std::move(next);
  }
  return level.front();
}

Reg Code::by_registers(const std::vector<Reg>& args, int native,
                       const std::function<Reg(const std::vector<Reg>& args)>& call) {
  const int lanes = args[0].lanes;
  std::vector<Reg> parts;
  for (int from = 0; from < lanes; from += native) {
    std::vector<Reg> chunk;
    for (const Reg& arg : args) chunk.push_back(lanes < native ? repeated(arg, native) : part(arg, from, native));
    parts.push_back(call(chunk));
  }
  return lanes < native ? part(parts.front(), 0, lanes) : joined(parts);
}

Reg Code::repeated(const Reg& vector, int lanes) {
  std::string order;
  for (int i = 0; i < lanes; ++i) order += (i ? ", i32 " : "i32 ") + std::to_string(i % vector.lanes);
  return pure(vector.type, lanes,
              "shufflevector " + type(vector) + " " + vector.text + ", " + type(vector) + " poison, <" +
                  std::to_string(lanes) + " x i32> <" + order + ">");
}

Reg Code::lane_numbers(int lanes, int64_t step) {
  if (lanes == 1) return integer(0, DType::int64, 1);
  std::string text = "<";
  for (int i = 0; i < lanes; ++i) text += (i ? ", i64 " : "i64 ") + std::to_string(i * step);
  return {text + ">", DType::int64, lanes};
}

DType Code::storage_type(DType dtype) { return dtype == DType::bool_ ? DType::uint8 : dtype; }

Reg Code::from_storage(const Reg& raw, DType dtype) {
  if (dtype == DType::bool_) return compare("icmp ne", raw, integer(0, DType::uint8, raw.lanes));
  if (dtype == DType::float16) return convert("fpext", raw, DType::float32);
  if (dtype != DType::bfloat16) return {raw.text, dtype, raw.lanes};
  const Reg wide = convert("zext", raw, DType::int32);
  return convert("bitcast", binary("shl", wide, integer(16, DType::int32, raw.lanes)), DType::float32);
}

// Rounds to nearest, ties to even, as torch does.
Reg Code::to_storage(const Reg& value, DType dtype) {
  if (dtype == DType::bool_) return convert("zext", value, DType::uint8);
  if (dtype == DType::float16) return convert("fptrunc", value, DType::float16);
  if (dtype != DType::bfloat16) return value;
  const int lanes = value.lanes;
  const Reg raw = convert("bitcast", value, DType::int32);
  const Reg odd = binary("and", binary("lshr", raw, integer(16, DType::int32, lanes)), integer(1, DType::int32, lanes));
  const Reg bias = binary("add", odd, integer(0x7fff, DType::int32, lanes));
  const Reg high = binary("lshr", binary("add", raw, bias), integer(16, DType::int32, lanes));
  const Reg nan = compare("fcmp uno", value, value);
  Reg result = convert("trunc", select(nan, integer(0x7fc0, DType::int32, lanes), high), DType::bfloat16);
  return result;
}

Reg Code::zero(DType type, int lanes) {
  if (lanes > 1) return {"zeroinitializer", type, lanes};
  const bool real = ir::is_floating(type) && type != DType::bfloat16;
  return {real ? "0.0" : type == DType::bool_ ? "false" : "0", type, 1};
}

std::string Code::mask_text(const Reg* mask, int lanes) {
  const std::string vector = "<" + std::to_string(lanes) + " x i1> ";
  return vector + (mask ? mask->text : "splat (i1 true)");
}

std::string Code::masked(const char* name, DType type, int lanes, const char* pointers) const {
  return std::string("@llvm.masked.") + name + "." + suffix(type, lanes) + "." + pointers;
}

Reg Code::elements(const std::string& base, DType dtype, const Reg& offsets) {
  return pure(DType::int64, offsets.lanes,
              "getelementptr inbounds " + scalar_type(storage_type(dtype)) + ", ptr " + base + ", " + type(offsets) +
                  " " + offsets.text);
}

std::string Code::element(const std::string& base, DType dtype, const Reg& offset) {
  return elements(base, dtype, offset).text;
}

Reg Code::load(const std::string& pointer, DType dtype, int lanes, const Reg* mask) {
  const DType stored = storage_type(dtype);
  const std::string vector = type(stored, lanes), align = std::to_string(ir::bytes(dtype));
  if (!mask || lanes == 1)
    return from_storage(define(stored, lanes, "load " + vector + ", ptr " + pointer + ", align " + align), dtype);
  const std::string function = masked("load", stored, lanes, "p0");
  const std::string mask_type = "<" + std::to_string(lanes) + " x i1>";
  declare("declare " + vector + " " + function + "(ptr, i32, " + mask_type + ", " + vector + ")");
  return from_storage(define(stored, lanes,
                             "call " + vector + " " + function + "(ptr " + pointer + ", i32 " + align + ", " +
                                 mask_text(mask, lanes) + ", " + vector + " zeroinitializer)"),
                      dtype);
}

void Code::store(const std::string& pointer, DType dtype, const Reg& value, const Reg* mask) {
  const Reg raw = to_storage(value, dtype);
  const DType stored = storage_type(dtype);
  const std::string vector = type(stored, raw.lanes), align = std::to_string(ir::bytes(dtype));
  if (!mask || raw.lanes == 1)
    return line("store " + vector + " " + raw.text + ", ptr " + pointer + ", align " + align);
  const std::string function = masked("store", stored, raw.lanes, "p0");
  declare("declare void " + function + "(" + vector + ", ptr, i32, <" + std::to_string(raw.lanes) + " x i1>)");
  line("call void " + function + "(" + vector + " " + raw.text + ", ptr " + pointer + ", i32 " + align + ", " +
       mask_text(mask, raw.lanes) + ")");
}

Reg Code::gather(const std::string& base, const Reg& offsets, DType dtype, const Reg* mask) {
  const DType stored = storage_type(dtype);
  const int lanes = offsets.lanes;
  const std::string pointers = "<" + std::to_string(lanes) + " x ptr>", vector = type(stored, lanes);
  const Reg places = elements(base, dtype, offsets);
  const std::string function = masked("gather", stored, lanes, ("v" + std::to_string(lanes) + "p0").c_str());
  declare("declare " + vector + " " + function + "(" + pointers + ", i32, <" + std::to_string(lanes) + " x i1>, " +
          vector + ")");
  return from_storage(define(stored, lanes,
                             "call " + vector + " " + function + "(" + pointers + " " + places.text + ", i32 " +
                                 std::to_string(ir::bytes(dtype)) + ", " + mask_text(mask, lanes) + ", " + vector +
                                 " zeroinitializer)"),
                      dtype);
}

void Code::scatter(const std::string& base, const Reg& offsets, DType dtype, const Reg& value, const Reg* mask) {
  const Reg raw = to_storage(value, dtype);
  const DType stored = storage_type(dtype);
  const int lanes = offsets.lanes;
  const std::string pointers = "<" + std::to_string(lanes) + " x ptr>", vector = type(stored, lanes);
  const Reg places = elements(base, dtype, offsets);
  const std::string function = masked("scatter", stored, lanes, ("v" + std::to_string(lanes) + "p0").c_str());
  declare("declare void " + function + "(" + vector + ", " + pointers + ", i32, <" + std::to_string(lanes) + " x i1>)");
  line("call void " + function + "(" + vector + " " + raw.text + ", " + pointers + " " + places.text + ", i32 " +
       std::to_string(ir::bytes(dtype)) + ", " + mask_text(mask, lanes) + ")");
}

std::string Code::declarations() const {
  std::string text;
  for (const std::string& declaration : declarations_) text += declaration + "\n";
  return text;
}

}  // namespace graphlift::cpu
