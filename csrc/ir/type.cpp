// Owns: names of dtypes and devices, and the text of tensor types.
// Must not: know which types an operator makes.
#include "ir/type.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace graphlift::ir {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int bytes;
  DTypeCategory category;
};

constexpr DTypeRow kDTypes[] = {
#define ROW(name, number, bytes, category) {DType::name, #name, bytes, DTypeCategory::category},
    GRAPHLIFT_DTYPES(ROW)
#undef ROW
};

constexpr DTypeRow kUndefined = {DType::undefined, "undefined", 0, DTypeCategory::Int};

const DTypeRow& row(DType dtype) {
  for (const DTypeRow& row : kDTypes)
    if (row.dtype == dtype) return row;
  return kUndefined;
}

// The enumerator of torch.bool has a trailing underscore, which is no part of its name.
std::string_view public_name(const DTypeRow& row) {
  return row.dtype == DType::bool_ ? row.name.substr(0, row.name.size() - 1) : row.name;
}

// By c10::DeviceType.
constexpr std::string_view kDevices[] = {"cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
                                         "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
                                         "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone"};

std::string join(const Dims& dims) {
  std::string text;
  for (const Sym& dim : dims) {
    if (!text.empty()) text += ", ";
    text += dim.str();
  }
  return text;
}

}  // namespace

std::string_view name(DType dtype) { return public_name(row(dtype)); }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& row : kDTypes)
    if (public_name(row) == name) return row.dtype;
  return std::nullopt;
}

int bytes(DType dtype) { return row(dtype).bytes; }
DTypeCategory category(DType dtype) { return row(dtype).category; }
bool is_floating(DType dtype) { return dtype != DType::undefined && category(dtype) == DTypeCategory::Float; }
bool is_complex(DType dtype) { return dtype != DType::undefined && category(dtype) == DTypeCategory::Complex; }
bool is_integral(DType dtype) {
  return dtype != DType::undefined && (category(dtype) == DTypeCategory::Int || category(dtype) == DTypeCategory::UInt);
}

std::string short_name(DType dtype) {
  static constexpr struct {
    std::string_view prefix;
    std::string_view letter;
  } kPrefixes[] = {{"bfloat", "bf"}, {"float8_", "f8_"}, {"float", "f"}, {"complex", "c"}, {"uint", "u"}, {"int", "i"}};
  std::string_view full = name(dtype);
  for (auto [prefix, letter] : kPrefixes)
    if (full.starts_with(prefix)) return std::string(letter) + std::string(full.substr(prefix.size()));
  return std::string(full);
}

std::optional<DType> dtype_from_short_name(std::string_view name) {
  for (const DTypeRow& row : kDTypes)
    if (short_name(row.dtype) == name) return row.dtype;
  return std::nullopt;
}

std::string Device::str() const {
  bool known = type >= 0 && static_cast<size_t>(type) < std::size(kDevices);
  std::string text = known ? std::string(kDevices[type]) : "device" + std::to_string(type);
  if (index >= 0) text += ":" + std::to_string(index);
  return text;
}

std::optional<Device> device_from_name(std::string_view name) {
  Device device;
  if (size_t colon = name.find(':'); colon != std::string_view::npos) {
    int index = 0;
    for (char digit : name.substr(colon + 1)) {
      if (!std::isdigit(static_cast<unsigned char>(digit)) || index > 12) return std::nullopt;
      index = index * 10 + (digit - '0');
    }
    if (colon + 1 == name.size() || index > 127) return std::nullopt;
    device.index = static_cast<int8_t>(index);
    name = name.substr(0, colon);
  }
  for (size_t type = 0; type < std::size(kDevices); ++type) {
    if (kDevices[type] != name) continue;
    device.type = static_cast<int8_t>(type);
    return device;
  }
  return std::nullopt;
}

Sym TensorType::numel() const {
  Sym product(1);
  for (const Sym& size : sizes) product = product * size;
  return product;
}

std::string TensorType::str() const {
  std::string text = short_name(dtype) + "[" + join(sizes) + "]{" + join(strides) + "}";
  if (!offset.is_constant() || offset.constant() != 0) text += "@(" + offset.str() + ")";
  text += " " + device.str();
  if (requires_grad) text += " grad";
  return text;
}

bool is_constant(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Sym& dim) { return dim.is_constant(); });
}

bool is_constant(const TensorType& type) {
  return is_constant(type.sizes) && is_constant(type.strides) && type.offset.is_constant();
}

Dims contiguous_strides(const Dims& sizes) {
  Dims strides(sizes.size());
  Sym stride(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    // A dimension of size 0 or 1 counts as one element, as in torch.
    bool counts = !sizes[i].is_constant() || sizes[i].constant() > 1;
    if (counts) stride = stride * sizes[i];
  }
  return strides;
}

}  // namespace graphlift::ir
