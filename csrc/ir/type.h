// Owns: types of graph values. Numbers of dtypes, layouts, memory formats and device types are torch's own (c10), so
// that torch/ converts by a cast; a test there holds that. Must not: include torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/sym.h"

namespace graphlift::ir {

// One row per dtype: name, torch's number, bytes per element, category.
// clang-format off
// clang-format off
#define GRAPHLIFT_DTYPES(ROW)                                                            \
  ROW(uint8, 0, 1, UInt) ROW(int8, 1, 1, Int) ROW(int16, 2, 2, Int) ROW(int32, 3, 4, Int)  \
  ROW(int64, 4, 8, Int) ROW(float16, 5, 2, Float) ROW(float32, 6, 4, Float)                \
  ROW(float64, 7, 8, Float) ROW(complex32, 8, 4, Complex) ROW(complex64, 9, 8, Complex)    \
  ROW(complex128, 10, 16, Complex) ROW(bool_, 11, 1, Bool) ROW(bfloat16, 15, 2, Float)     \
  ROW(float8_e5m2, 23, 1, Float) ROW(float8_e4m3fn, 24, 1, Float)                          \
  ROW(float8_e5m2fnuz, 25, 1, Float) ROW(float8_e4m3fnuz, 26, 1, Float)                    \
  ROW(uint16, 27, 2, UInt) ROW(uint32, 28, 4, UInt) ROW(uint64, 29, 8, UInt)
// clang-format on

enum class DType : int8_t {
#define ROW(name, number, bytes, category) name = number,
  GRAPHLIFT_DTYPES(ROW)
#undef ROW
      undefined = -1,
};

enum class DTypeCategory : uint8_t { Bool, UInt, Int, Float, Complex };

std::string_view name(DType dtype);  // "float32", "bool"
std::optional<DType> dtype_from_name(std::string_view name);
std::string short_name(DType dtype);  // "f32", "bf16", "i64", "bool": in graph text
std::optional<DType> dtype_from_short_name(std::string_view name);
int bytes(DType dtype);
DTypeCategory category(DType dtype);
bool is_floating(DType dtype);  // Float only
bool is_complex(DType dtype);
bool is_integral(DType dtype);  // Int and UInt, without bool

struct Device {
  int8_t type = 0;    // c10::DeviceType: 0 CPU, 1 CUDA, ...
  int8_t index = -1;  // -1: no index (always so for CPU)
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type == 0; }
  bool is_cuda() const { return type == 1; }
  std::string str() const;  // "cpu", "cuda:0"
};

std::optional<Device> device_from_name(std::string_view name);

using Dims = std::vector<Sym>;

struct TensorType {
  DType dtype = DType::float32;
  Device device;
  Dims sizes;    // elements
  Dims strides;  // elements
  Sym offset = 0;
  bool requires_grad = false;

  int rank() const { return static_cast<int>(sizes.size()); }
  Sym numel() const;
  // "f32[s0, 8]{8, 1} cpu"; an offset follows the strides as "@(16)", requires_grad the device as "grad".
  std::string str() const;
};

Dims contiguous_strides(const Dims& sizes);
bool is_constant(const Dims& dims);
bool is_constant(const TensorType& type);  // sizes, strides and offset

}  // namespace graphlift::ir
