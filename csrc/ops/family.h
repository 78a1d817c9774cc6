// Owns: the list of operator families, and the macros that write a family's rows. Must not: hold rules.
#pragma once

#include <span>

#include "ops/shape_rule.h"

namespace graphlift::ops {

// One row per file of rows: OpRow tables are joined by table.cpp.
#define GRAPHLIFT_OP_FAMILIES(FAMILY) \
  FAMILY(pointwise_unary)             \
  FAMILY(pointwise_binary)            \
  FAMILY(pointwise_ternary)           \
  FAMILY(pointwise_backward)          \
  FAMILY(views)                       \
  FAMILY(view_gradients)              \
  FAMILY(copies)                      \
  FAMILY(factories)                   \
  FAMILY(random)                      \
  FAMILY(contractions)                \
  FAMILY(convolution)                 \
  FAMILY(normalization)               \
  FAMILY(softmax)                     \
  FAMILY(reductions)                  \
  FAMILY(scans)                       \
  FAMILY(attention)                   \
  FAMILY(indexing)                    \
  FAMILY(scattering)                  \
  FAMILY(embedding)                   \
  FAMILY(losses)                      \
  FAMILY(sorting)                     \
  FAMILY(joining)                     \
  FAMILY(pooling)                     \
  FAMILY(upsampling)                  \
  FAMILY(padding)                     \
  FAMILY(recurrent)                   \
  FAMILY(optimizers)                  \
  FAMILY(spectral)

#define FAMILY(name) std::span<const OpRow> name##_rows();
GRAPHLIFT_OP_FAMILIES(FAMILY)
#undef FAMILY

}  // namespace graphlift::ops

#define GL_OP(name, overload, ...) {"aten::" name "." overload, __VA_ARGS__}
// The functional operator and the in-place one that stores its result in argument 0.
#define GL_BOTH(name, overload, ...) \
  GL_OP(name, overload, __VA_ARGS__), GL_OP(name "_", overload, (in_place<__VA_ARGS__>))
