// Owns: calls behind a product as what a library finishes a product with, and where that is worth it.
// Must not: make products.
#pragma once

#include <optional>

#include "backends/codegen/fuse.h"
#include "backends/cuda/matmul.h"

namespace graphlift::cuda {

// What is done to a product's numbers besides multiplying. Operands by their place among the operation's; -1: none.
struct Finishing {
  double alpha = 1, beta = 0;
  int added = -1;            // times beta
  bool like_result = false;  // it lies in memory as the result does
  int bias = -1;
  int aux = -1;  // lies as the result does
  Activation activation = Activation::None;
  bool widens = false;             // 16 bits to float32
  const ir::Node* kept = nullptr;  // whose result has to be stored, too, and is not yet
};

// `first`: what the operation's first call does itself. Nullopt: some call is none that can be done, in this order.
std::optional<Finishing> finished(const codegen::NativeOperation& operation, Finishing first);

// Whether a call only gives memory without gaps other sizes.
bool is_plain_view(const ir::Node& call);

}  // namespace graphlift::cuda
