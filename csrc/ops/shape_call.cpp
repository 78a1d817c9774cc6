// Owns: reading a call's arguments. Must not: decide anything about results.
#include "base/error.h"
#include "ops/shape_rule.h"

namespace graphlift::ops {
namespace {

template <class T>
const T* get(const ShapeArg& arg) {
  return std::get_if<T>(static_cast<const ShapeArg::variant*>(&arg));
}

ir::Sym as_sym(const ShapeArg& arg) {
  if (const auto* sym = get<ir::Sym>(arg)) return *sym;
  if (const auto* flag = get<bool>(arg)) return ir::Sym(*flag ? 1 : 0);
  GL_CHECK(false, "an operator's argument is no int");
}

}  // namespace

bool ShapeCall::is_tensor(size_t i) const { return i < args.size() && get<const ir::TensorType*>(args[i]); }

bool ShapeCall::is_number(size_t i) const {
  const ShapeArg& arg = args[i];
  return get<ir::Sym>(arg) || get<double>(arg) || get<bool>(arg) || get<std::complex<double>>(arg);
}

bool ShapeCall::none(size_t i) const { return i >= args.size() || get<ir::None>(args[i]); }

const ir::TensorType& ShapeCall::tensor(size_t i) const {
  GL_CHECK(is_tensor(i), "an operator's argument is no tensor");
  return **get<const ir::TensorType*>(args[i]);
}

const ir::TensorType* ShapeCall::optional_tensor(size_t i) const { return is_tensor(i) ? &tensor(i) : nullptr; }

ir::Sym ShapeCall::sym(size_t i) const { return as_sym(args[i]); }

int64_t ShapeCall::integer(size_t i) const {
  ir::Sym value = sym(i);
  return value.is_constant() ? value.constant() : env.specialize(value);
}

bool ShapeCall::boolean(size_t i) const {
  if (const auto* flag = get<bool>(args[i])) return *flag;
  return integer(i) != 0;
}

double ShapeCall::real(size_t i) const {
  if (const auto* number = get<double>(args[i])) return *number;
  return static_cast<double>(integer(i));
}

ir::Dims ShapeCall::syms(size_t i) const {
  if (none(i)) return {};
  const auto* list = get<std::vector<ShapeArg>>(args[i]);
  if (!list) return {sym(i)};
  ir::Dims result;
  result.reserve(list->size());
  for (const ShapeArg& item : *list) result.push_back(as_sym(item));
  return result;
}

std::vector<int64_t> ShapeCall::integers(size_t i) const {
  std::vector<int64_t> result;
  for (const ir::Sym& value : syms(i)) result.push_back(value.is_constant() ? value.constant() : env.specialize(value));
  return result;
}

std::vector<bool> ShapeCall::booleans(size_t i) const {
  std::vector<bool> result;
  for (int64_t value : integers(i)) result.push_back(value != 0);
  return result;
}

std::vector<const ir::TensorType*> ShapeCall::tensors(size_t i) const {
  std::vector<const ir::TensorType*> result;
  const auto* list = get<std::vector<ShapeArg>>(args[i]);
  if (!list) return result;
  for (const ShapeArg& item : *list) {
    const auto* type = get<const ir::TensorType*>(item);
    GL_CHECK(type || get<ir::None>(item), "an operator's list holds something that is no tensor");
    result.push_back(type ? *type : nullptr);
  }
  return result;
}

std::optional<ir::DType> ShapeCall::dtype(size_t i) const {
  if (none(i)) return std::nullopt;
  if (const auto* dtype = get<ir::DType>(args[i])) return *dtype;
  return static_cast<ir::DType>(integer(i));
}

std::optional<ir::Device> ShapeCall::device(size_t i) const {
  if (none(i)) return std::nullopt;
  const auto* device = get<ir::Device>(args[i]);
  GL_CHECK(device, "an operator's argument is no device");
  return *device;
}

std::optional<int8_t> ShapeCall::memory_format(size_t i) const {
  if (none(i)) return std::nullopt;
  if (const auto* format = get<ir::MemoryFormat>(args[i])) return format->number;
  return static_cast<int8_t>(integer(i));
}

}  // namespace graphlift::ops
