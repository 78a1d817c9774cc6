// Owns: see promote.h.
#include "ops/promote.h"

#include <algorithm>

namespace graphlift::ops {

using ir::DType;
using ir::DTypeCategory;

namespace {

constexpr bool is_float8(DType dtype) { return dtype >= DType::float8_e5m2 && dtype <= DType::float8_e4m3fnuz; }
// uint16, uint32 and uint64 promote with nothing but floats and themselves.
constexpr bool is_bare_unsigned(DType dtype) { return dtype >= DType::uint16 && dtype <= DType::uint64; }

bool is_float_or_complex(DType dtype) { return ir::is_floating(dtype) || ir::is_complex(dtype); }

DType promote_floats(DType a, DType b) {
  if (ir::bytes(a) == 2 && ir::bytes(b) == 2 && a != b) return DType::float32;  // float16 with bfloat16
  return ir::bytes(a) >= ir::bytes(b) ? a : b;
}

DType promote_ints(DType a, DType b) {
  if (a == DType::uint8 && b == DType::int8) return DType::int16;
  if (a == DType::int8 && b == DType::uint8) return DType::int16;
  if (ir::bytes(a) == ir::bytes(b)) return a;
  return ir::bytes(a) > ir::bytes(b) ? a : b;
}

DType promote_complex(DType a, DType b) {
  const DType mine = real_of(a), other = real_of(b);
  return complex_of(promote_floats(mine, other));
}

}  // namespace

DType complex_of(DType real) {
  switch (real) {
    case DType::float16:
      return DType::complex32;
    case DType::bfloat16:
    case DType::float32:
      return DType::complex64;
    case DType::float64:
      return DType::complex128;
    default:
      return real;
  }
}

DType real_of(DType complex) {
  switch (complex) {
    case DType::complex32:
      return DType::float16;
    case DType::complex64:
      return DType::float32;
    case DType::complex128:
      return DType::float64;
    default:
      return complex;
  }
}

std::optional<DType> promote(DType a, DType b) {
  if (a == DType::undefined) return b;
  if (b == DType::undefined || a == b) return a;
  if (is_float8(a) || is_float8(b)) return std::nullopt;
  if (is_bare_unsigned(a) || is_bare_unsigned(b)) {
    if (is_float_or_complex(a)) return a;
    if (is_float_or_complex(b)) return b;
    return std::nullopt;
  }
  if (a == DType::bool_) return b;
  if (b == DType::bool_) return a;
  if (ir::is_complex(a) || ir::is_complex(b)) {
    if (ir::is_integral(a)) return b;
    if (ir::is_integral(b)) return a;
    return promote_complex(a, b);
  }
  if (ir::is_floating(a) && ir::is_floating(b)) return promote_floats(a, b);
  if (ir::is_floating(a)) return a;
  if (ir::is_floating(b)) return b;
  return promote_ints(a, b);
}

bool can_cast(DType from, DType to) {
  if (ir::is_complex(from) && !ir::is_complex(to)) return false;
  if (ir::is_floating(from) && (ir::is_integral(to) || to == DType::bool_)) return false;
  return from == DType::bool_ || to != DType::bool_;
}

DType number_dtype(const ShapeArg& number) {
  const auto& value = static_cast<const ShapeArg::variant&>(number);
  if (std::holds_alternative<double>(value)) return DType::float64;
  if (std::holds_alternative<bool>(value)) return DType::bool_;
  if (std::holds_alternative<std::complex<double>>(value)) return DType::complex128;
  return DType::int64;
}

void ResultType::join(DType& slot, DType dtype) {
  auto joined = promote(slot, dtype);
  failed_ |= !joined;
  slot = joined.value_or(slot);
}

void ResultType::add(const ir::TensorType& type) { join(type.rank() > 0 ? dimensioned_ : zero_dim_, type.dtype); }

void ResultType::add_number(const ShapeArg& number) {
  DType dtype = number_dtype(number);
  if (ir::is_floating(dtype)) dtype = default_dtype_;
  if (ir::is_complex(dtype)) dtype = complex_of(default_dtype_);
  join(wrapped_, dtype);
}

void ResultType::add(const ShapeCall& call, size_t i) {
  if (call.is_tensor(i)) {
    add(call.tensor(i));
  } else if (!call.none(i) && call.is_number(i)) {
    add_number(call.args[i]);
  }
}

namespace {

std::optional<DType> combine(DType higher, DType lower) {
  if (higher != DType::undefined) {
    if (ir::is_complex(higher)) return higher;
    if (ir::is_floating(higher)) return ir::is_complex(lower) ? complex_of(higher) : higher;
  }
  if (higher == DType::bool_ || ir::is_floating(lower) || ir::is_complex(lower)) return promote(higher, lower);
  return higher != DType::undefined ? higher : lower;
}

}  // namespace

std::optional<DType> ResultType::get() const {
  if (failed_) return std::nullopt;
  auto lower = combine(zero_dim_, wrapped_);
  if (!lower) return std::nullopt;
  auto result = combine(dimensioned_, *lower);
  if (!result || *result == DType::undefined) return std::nullopt;
  return result;
}

}  // namespace graphlift::ops
