// Owns: torch's TensorIterator as results see it: broadcast sizes, strides of the fresh result, common dtype and
// device, and the generic rules of pointwise operators made of it. Must not: know which operator it is.
#pragma once

#include <array>
#include <vector>

#include "ops/layout.h"
#include "ops/promote.h"
#include "ops/shape_rule.h"

namespace graphlift::ops {

// The device that tensors of one call share; CPU scalars (0-dim) go along with any. Nullopt: they differ.
std::optional<ir::Device> common_device(std::span<const ir::TensorType* const> operands);

// Sizes and strides of what the iterator makes of these operands, in order.
struct Placement {
  ir::Dims sizes, strides;
};
std::optional<Placement> iterate(ir::ShapeEnv& env, std::span<const ir::TensorType* const> operands);

// What a pointwise result's dtype is.
enum class ResultDType : uint8_t {
  Common,    // promoted
  Float,     // promoted; integers become the default dtype
  Bool,      // of a comparison, over promoted operands
  RealPart,  // promoted; complex becomes its real part
};

enum Refuse : uint8_t {
  kNothing = 0,
  kBool = 1,         // a common dtype of bool
  kBoolOperand = 2,  // any tensor of bool
  kComplex = 4,
  kFloat = 8,   // and complex
  kInt = 16,    // and bool
  kMixed = 32,  // tensors of different dtypes
};

struct Pointwise {
  int operands;
  ResultDType dtype = ResultDType::Common;
  int refuse = kNothing;                  // bits of Refuse, over the common dtype
  std::array<uint8_t, 3> at = {0, 1, 2};  // which arguments are the operands
  bool numbers_iterate = true;  // a number is a 0-dim operand of the iterator; false: it only takes part in promotion
};

// The arguments at Kind.at are tensors, numbers, or none (left out).
bool pointwise(ShapeCall& call, const Pointwise& kind);

template <Pointwise Kind>
bool pointwise_rule(ShapeCall& call) {
  return pointwise(call, Kind);
}

// Turns what the functional rule `rule` gave into the in-place operator's result: argument `self`, unchanged, if the
// result fits.
bool store_in_place(ShapeCall& call, size_t self);

// One memory cell stands for several elements: torch refuses to write there.
bool repeats_itself(ir::ShapeEnv& env, const ir::TensorType& type);
// The result of an operator that only writes into argument 0.
bool give_self_in_place(ShapeCall& call);
// Fresh memory with the very strides of argument 0, gaps included, as functional forms of writes make it.
bool give_self_copied(ShapeCall& call);

template <ShapeRule Rule>
bool in_place(ShapeCall& call) {
  return call.is_tensor(0) && Rule(call) && store_in_place(call, 0);
}

}  // namespace graphlift::ops
