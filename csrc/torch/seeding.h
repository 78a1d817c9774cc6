// Owns: random generators in graphs: how an argument names one, and the operator that seeds one.
// Must not: draw numbers.
#pragma once

#include <ATen/core/Generator.h>

#include <string>

#include "ir/graph.h"

namespace graphlift::torch_layer {

// "graphlift::manual_seed(Generator? generator, int seed) -> ()": without a generator, torch.manual_seed(seed).
inline constexpr std::string_view kManualSeed = "graphlift::manual_seed.default";
void register_seeding();  // of that operator, once in a process

// A generator as an argument of a call; it lives on for graphs that name it. The default one of a device is None.
ir::Arg generator_argument(const at::Generator& generator);
bool names_generator(const std::string& text);
at::Generator named_generator(const std::string& name);

}  // namespace graphlift::torch_layer
