// Owns: what factories share: options and sizes. Must not: hold rows.
#pragma once

#include "ops/layout.h"
#include "ops/shape_rule.h"

namespace graphlift::ops {

// Argument i as a device with an index; `fallback` when it is none.
ir::Device factory_device(ShapeCall& call, size_t i, ir::Device fallback = {});
// Arguments options.. are dtype, layout, device, pin_memory. False: a negative size.
bool give_sizes(ShapeCall& call, ir::Dims sizes, size_t options, ir::DType fallback);
// Of the sizes of argument 0; options.. are dtype, layout, device, pin_memory, memory_format.
bool give_like(ShapeCall& call, size_t options);
// The dtype of a fresh tensor filled with the number at i.
ir::DType default_for_number(const ShapeCall& call, size_t i);

}  // namespace graphlift::ops
