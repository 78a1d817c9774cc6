// Owns: see iterator.h.
#include "ops/iterator.h"

#include <algorithm>

#include "ops/known.h"
#include "ops/results.h"

namespace graphlift::ops {

using ir::Dims;
using ir::DType;
using ir::ShapeEnv;
using ir::Sym;
using ir::TensorType;

std::optional<ir::Device> common_device(std::span<const TensorType* const> operands) {
  ir::Device device;
  for (const TensorType* type : operands)
    if (device.is_cpu()) device = type->device;
  for (const TensorType* type : operands) {
    if (type->device == device) continue;
    if (!type->device.is_cpu() || type->rank() > 0) return std::nullopt;
  }
  return device;
}

namespace {

// Strides over the broadcast sizes, 0 where the operand is repeated.
Dims broadcast_strides(ShapeEnv& env, const TensorType& type, const Dims& sizes) {
  Dims strides(sizes.size(), 0);
  const size_t lead = sizes.size() - type.sizes.size();
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    const bool repeated =
        !type.sizes[i].same(sizes[lead + i]) && equal(env, type.sizes[i], 1) && !equal(env, sizes[lead + i], 1);
    if (!repeated) strides[lead + i] = type.strides[i];
  }
  return strides;
}

bool has_zero(const Dims& sizes) {
  return std::any_of(sizes.begin(), sizes.end(),
                     [](const Sym& size) { return size.is_constant() && size.constant() == 0; });
}

// As fresh memory, or repeated: then the iterator's order is the natural one, and no dim that may be 1 long matters.
bool lies_naturally(const TensorType& type) {
  const Dims natural = contiguous(type.sizes);
  for (size_t i = 0; i < natural.size(); ++i)
    if (!type.strides[i].same(natural[i]) && !type.strides[i].same(0)) return false;
  return true;
}

bool is_natural(const std::vector<int>& order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int>(order.size() - 1 - i)) return false;
  return true;
}

bool all_same_shape(ShapeEnv& env, std::span<const TensorType* const> operands) {
  for (const TensorType* type : operands)
    if (type->rank() != operands[0]->rank() || !equal(env, type->sizes, operands[0]->sizes)) return false;
  return true;
}

// Contiguous without two dims that could change places: as the first operand it alone says how the result lies, and how
// the others do need not be asked.
bool decides_alone(const ShapeEnv& env, const TensorType& type) {
  Sym expected = 1;
  for (size_t dim = type.sizes.size(); dim-- > 0;) {
    if (!known_equal(env, type.strides[dim], expected)) return false;
    if (dim > 0 && !known_less(env, 1, type.sizes[dim])) return false;
    expected = expected * type.sizes[dim];
  }
  return true;
}

// The iterator's fast paths: every operand has the shape of the result and one common dense layout.
std::optional<Dims> shared_layout(ShapeEnv& env, std::span<const TensorType* const> operands, const Dims& sizes) {
  if (!all_same_shape(env, operands)) return std::nullopt;
  if (decides_alone(env, *operands[0])) return contiguous(sizes);
  auto all = [&](auto&& holds) { return std::all_of(operands.begin(), operands.end(), holds); };
  if (all([&](const TensorType* type) { return is_contiguous(env, *type); })) return contiguous(sizes);
  if (all([&](const TensorType* type) { return is_contiguous(env, *type, Format::ChannelsLast); }))
    return strides_for(sizes, Format::ChannelsLast);
  if (all([&](const TensorType* type) {
        return equal(env, type->strides, operands[0]->strides) && is_dense(env, *type);
      }))
    return operands[0]->strides;
  return std::nullopt;
}

}  // namespace

std::optional<Placement> iterate(ShapeEnv& env, std::span<const TensorType* const> operands) {
  Placement result;
  bool all_natural = true;
  for (const TensorType* type : operands) {
    auto sizes = broadcast(env, result.sizes, type->sizes);
    if (!sizes) return std::nullopt;
    result.sizes = std::move(*sizes);
    all_natural &= lies_naturally(*type);
  }
  // A size of 0 breaks ties between equal strides the other way.
  if (all_natural && !has_zero(result.sizes)) {
    result.strides = contiguous(result.sizes);
    return result;
  }
  if (auto strides = shared_layout(env, operands, result.sizes)) {
    result.strides = std::move(*strides);
    return result;
  }
  std::vector<Dims> strides;
  for (const TensorType* type : operands) strides.push_back(broadcast_strides(env, *type, result.sizes));
  const std::vector<int> order = iteration_order(env, result.sizes, strides);
  if (is_natural(order)) {
    result.strides = contiguous(result.sizes);
    return result;
  }
  result.strides.resize(result.sizes.size());
  Sym next = 1;
  for (int dim : order) {
    result.strides[dim] = next;
    next = next * result.sizes[dim];
  }
  return result;
}

namespace {

std::optional<DType> result_dtype(DType common, ResultDType kind, DType default_dtype) {
  switch (kind) {
    case ResultDType::Common:
      return common;
    case ResultDType::Bool:
      return DType::bool_;
    case ResultDType::RealPart:
      return real_of(common);
    case ResultDType::Float:
      return ir::is_floating(common) || ir::is_complex(common) ? common : default_dtype;
  }
  return std::nullopt;
}

}  // namespace

namespace {

bool refused(const Pointwise& kind, DType common, std::span<const TensorType* const> tensors) {
  if ((kind.refuse & kBool) && common == DType::bool_) return true;
  if ((kind.refuse & (kComplex | kFloat)) && ir::is_complex(common)) return true;
  if ((kind.refuse & kFloat) && ir::is_floating(common)) return true;
  if ((kind.refuse & kInt) && !ir::is_floating(common) && !ir::is_complex(common)) return true;
  for (const TensorType* type : tensors) {
    if ((kind.refuse & kBoolOperand) && type->dtype == DType::bool_) return true;
    if ((kind.refuse & kMixed) && type->dtype != tensors[0]->dtype) return true;
  }
  return false;
}

// On CPU the iterator first copies operands of another dtype, and a copy is dense. `copies` owns them.
void cast_operands(ShapeEnv& env, std::vector<const TensorType*>& operands, DType computed,
                   std::vector<TensorType>& copies) {
  copies.reserve(operands.size());
  for (const TensorType*& type : operands) {
    if (type->rank() == 0 || type->dtype == computed) continue;
    copies.push_back(*type);
    copies.back().strides = preserved_strides(env, *type);
    type = &copies.back();
  }
}

}  // namespace

bool pointwise(ShapeCall& call, const Pointwise& kind) {
  static const TensorType number;  // 0-dim, on CPU
  std::vector<const TensorType*> operands, tensors;
  ResultType promotion(call.default_dtype);
  for (int k = 0; k < kind.operands; ++k) {
    const size_t i = kind.at[k];
    if (call.none(i)) continue;
    promotion.add(call, i);
    if (call.is_tensor(i)) {
      tensors.push_back(&call.tensor(i));
      operands.push_back(tensors.back());
    } else if (!call.is_number(i)) {
      return false;
    } else if (kind.numbers_iterate) {
      operands.push_back(&number);
    }
  }
  auto common = promotion.get();
  if (tensors.empty() || !common || refused(kind, *common, tensors)) return false;
  auto device = common_device(tensors);
  if (!device) return false;
  auto dtype = result_dtype(*common, kind.dtype, call.default_dtype);
  if (!dtype) return false;
  std::vector<TensorType> copies;
  if (device->is_cpu()) cast_operands(call.env, operands, kind.dtype == ResultDType::Float ? *dtype : *common, copies);
  auto placement = iterate(call.env, operands);
  if (!placement) return false;
  return give(call, *dtype, *device, std::move(placement->sizes), std::move(placement->strides));
}

bool repeats_itself(ShapeEnv& env, const TensorType& type) {
  for (size_t i = 0; i < type.sizes.size(); ++i)
    if (equal(env, type.strides[i], 0) && less(env, 1, type.sizes[i])) return true;
  return false;
}

bool give_self_in_place(ShapeCall& call) {
  return !repeats_itself(call.env, call.tensor(0)) && give(call, call.tensor(0));
}

bool give_self_copied(ShapeCall& call) {
  const TensorType& self = call.tensor(0);
  return repeats_itself(call.env, self) ? give_preserved(call, self, self.dtype) : give(call, self);
}

bool store_in_place(ShapeCall& call, size_t self) {
  if (call.results.size() != 1 || !call.results[0] || repeats_itself(call.env, call.tensor(self))) return false;
  const TensorType& target = call.tensor(self);
  const TensorType& computed = *call.results[0];
  if (!can_cast(computed.dtype, target.dtype) || !equal(call.env, computed.sizes, target.sizes)) return false;
  if (computed.device != target.device) return false;
  call.results[0] = target;
  return true;
}

}  // namespace graphlift::ops
