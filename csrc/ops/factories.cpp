// Owns: rows of operators that make a tensor from sizes, options and numbers. Must not: hold random ones.
#include "ops/factories.h"

#include <cmath>

#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"

namespace graphlift::ops {

using ir::Device;
using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

Device factory_device(ShapeCall& call, size_t i, Device fallback) {
  Device device = call.device(i).value_or(fallback);
  if (!device.is_cpu() && device.index < 0) device.index = call.current_device;
  if (device.is_cpu()) device.index = -1;
  return device;
}

bool give_sizes(ShapeCall& call, Dims sizes, size_t options, DType fallback) {
  for (const Sym& size : sizes)
    if (less(call.env, size, 0)) return false;
  return give_contiguous(call, call.dtype(options).value_or(fallback), factory_device(call, options + 2),
                         std::move(sizes));
}

bool give_like(ShapeCall& call, size_t options) {
  TensorType type = call.tensor(0);
  type.dtype = call.dtype(options).value_or(type.dtype);
  type.device = factory_device(call, options + 2, type.device);
  const auto format = static_cast<Format>(call.memory_format(options + 4).value_or(1));
  if (format == Format::Preserve) return give_preserved(call, type, type.dtype);
  if (format != Format::Contiguous && type.rank() != (format == Format::ChannelsLast ? 4 : 5)) return false;
  return give_format(call, type, type.sizes, format);
}

DType default_for_number(const ShapeCall& call, size_t i) {
  const DType dtype = number_dtype(call.args[i]);
  if (ir::is_floating(dtype)) return call.default_dtype;
  return ir::is_complex(dtype) ? complex_of(call.default_dtype) : dtype;
}

namespace {

bool empty(ShapeCall& call) {
  const Dims sizes = call.syms(0);
  if (!give_sizes(call, sizes, 1, call.default_dtype)) return false;
  const auto format = static_cast<Format>(call.memory_format(5).value_or(0));
  if (format == Format::Preserve) return false;
  if (format != Format::Contiguous && sizes.size() != (format == Format::ChannelsLast ? 4u : 5u)) return false;
  call.results[0]->strides = strides_for(sizes, format);
  return true;
}

bool with_strides(ShapeCall& call, size_t strides) {
  TensorType& result = *call.results[0];
  result.strides = call.syms(strides);
  if (result.strides.size() != result.sizes.size()) return false;
  for (const Sym& stride : result.strides)
    if (less(call.env, stride, 0)) return false;
  return true;
}

bool empty_strided(ShapeCall& call) {
  return give_sizes(call, call.syms(0), 2, call.default_dtype) && with_strides(call, 1);
}

bool of_sizes(ShapeCall& call) { return give_sizes(call, call.syms(0), 1, call.default_dtype); }
bool full(ShapeCall& call) { return give_sizes(call, call.syms(0), 2, default_for_number(call, 1)); }

// new_*: self gives dtype and device.
bool new_sizes(ShapeCall& call, size_t options) {
  const TensorType& self = call.tensor(0);
  if (!give_sizes(call, call.syms(1), options, self.dtype)) return false;
  call.results[0]->device = factory_device(call, options + 2, self.device);
  return true;
}
bool new_tensor(ShapeCall& call) { return new_sizes(call, 2); }
bool new_full(ShapeCall& call) { return new_sizes(call, 3); }
bool new_empty_strided(ShapeCall& call) { return new_sizes(call, 3) && with_strides(call, 2); }

bool like(ShapeCall& call) { return give_like(call, 1); }
bool full_like(ShapeCall& call) { return give_like(call, 2); }

bool is_int(const ShapeCall& call, size_t i) {
  const DType dtype = number_dtype(call.args[i]);
  return dtype == DType::int64 || dtype == DType::bool_;
}

// A number as torch takes it for int64 results: cut off.
Sym as_int(const ShapeCall& call, size_t i) {
  return is_int(call, i) ? call.sym(i) : Sym(static_cast<int64_t>(call.real(i)));
}

// From start (argument 0, or 0) to end in steps; the options follow.
bool range(ShapeCall& call, bool has_start, bool has_step) {
  const size_t end = has_start ? 1 : 0, options = end + (has_step ? 2 : 1);
  const size_t step = end + 1;
  bool all_int = is_int(call, end) && (!has_start || is_int(call, 0)) && (!has_step || is_int(call, step));
  DType dtype = call.dtype(options).value_or(all_int ? DType::int64 : call.default_dtype);
  Sym size;
  if (all_int || dtype == DType::int64) {
    const Sym first = has_start ? as_int(call, 0) : Sym(0);
    const Sym stride = has_step ? as_int(call, step) : Sym(1);
    const int64_t by = stride.is_constant() ? stride.constant() : call.env.specialize(stride);
    if (by == 0) return false;
    const Sym last = as_int(call, end);
    const Sym distance = by > 0 ? last - first : first - last;
    if (less(call.env, distance, 0)) return false;
    size = by == 1 || by == -1 ? distance : ceildiv(distance, by > 0 ? by : -by);
  } else {
    const double first = has_start ? call.real(0) : 0, by = has_step ? call.real(step) : 1;
    const double distance = (call.real(end) - first) / by;
    if (!std::isfinite(distance) || distance < 0) return false;
    size = static_cast<int64_t>(std::ceil(distance));
  }
  return give_sizes(call, {size}, options, dtype);
}
bool arange_end(ShapeCall& call) { return range(call, false, false); }
bool arange_start(ShapeCall& call) { return range(call, true, false); }
bool arange_step(ShapeCall& call) { return range(call, true, true); }

bool linspace(ShapeCall& call) {
  const bool complex = ir::is_complex(number_dtype(call.args[0])) || ir::is_complex(number_dtype(call.args[1]));
  return give_sizes(call, {call.sym(2)}, 3, complex ? complex_of(call.default_dtype) : call.default_dtype);
}

bool eye(ShapeCall& call) { return give_sizes(call, {call.sym(0), call.sym(0)}, 1, call.default_dtype); }
bool eye_m(ShapeCall& call) { return give_sizes(call, {call.sym(0), call.sym(1)}, 2, call.default_dtype); }
bool scalar_tensor(ShapeCall& call) { return give_sizes(call, {}, 1, call.default_dtype); }

// Windows of signal processing: their length, then how they look, then the options.
template <size_t Options>
bool window(ShapeCall& call) {
  return give_sizes(call, {call.sym(0)}, Options, call.default_dtype);
}

// Index pairs of a triangle: the count is a number of cells, so rows and columns are fixed.
template <bool Lower>
bool triangle_indices(ShapeCall& call) {
  const int64_t rows = call.integer(0), columns = call.integer(1), offset = call.integer(2);
  if (rows < 0 || columns < 0) return false;
  int64_t below = 0;  // cells with column <= row + shift
  const int64_t shift = Lower ? offset : offset - 1;
  for (int64_t row = 0; row < rows; ++row) below += std::min(std::max<int64_t>(row + shift + 1, 0), columns);
  const int64_t count = Lower ? below : rows * columns - below;
  return give_sizes(call, {2, count}, 3, DType::int64);
}

constexpr OpRow kFactories[] = {
    GL_OP("empty", "memory_format", empty),
    GL_OP("empty_strided", "default", empty_strided),
    GL_OP("zeros", "default", of_sizes),
    GL_OP("ones", "default", of_sizes),
    GL_OP("full", "default", full),
    GL_OP("new_empty", "default", new_tensor),
    GL_OP("new_zeros", "default", new_tensor),
    GL_OP("new_ones", "default", new_tensor),
    GL_OP("new_full", "default", new_full),
    GL_OP("new_empty_strided", "default", new_empty_strided),
    GL_OP("empty_like", "default", like),
    GL_OP("zeros_like", "default", like),
    GL_OP("ones_like", "default", like),
    GL_OP("full_like", "default", full_like),
    GL_OP("arange", "default", arange_end),
    GL_OP("arange", "start", arange_start),
    GL_OP("arange", "start_step", arange_step),
    GL_OP("linspace", "default", linspace),
    GL_OP("eye", "default", eye),
    GL_OP("eye", "m", eye_m),
    GL_OP("scalar_tensor", "default", scalar_tensor),
    GL_OP("bartlett_window", "default", window<1>),
    GL_OP("bartlett_window", "periodic", window<2>),
    GL_OP("blackman_window", "default", window<1>),
    GL_OP("blackman_window", "periodic", window<2>),
    GL_OP("hann_window", "default", window<1>),
    GL_OP("hann_window", "periodic", window<2>),
    GL_OP("hamming_window", "default", window<1>),
    GL_OP("hamming_window", "periodic", window<2>),
    GL_OP("hamming_window", "periodic_alpha", window<3>),
    GL_OP("hamming_window", "periodic_alpha_beta", window<4>),
    GL_OP("kaiser_window", "default", window<1>),
    GL_OP("kaiser_window", "periodic", window<2>),
    GL_OP("kaiser_window", "beta", window<3>),
    GL_OP("tril_indices", "default", triangle_indices<true>),
    GL_OP("triu_indices", "default", triangle_indices<false>),
};

}  // namespace

std::span<const OpRow> factories_rows() { return kFactories; }

}  // namespace graphlift::ops
