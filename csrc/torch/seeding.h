// Owns: random generators in graphs: how an argument names one, and the operator that seeds one.
// Must not: draw numbers.
#pragma once

#include <ATen/core/Generator.h>

#include <string>

#include "ir/graph.h"

namespace graphlift::torch_layer {

// "graphlift::manual_seed(Generator? generator, int seed) -> ()": without a generator, torch.manual_seed(seed).
inline constexpr std::string_view kManualSeed = "graphlift::manual_seed.default";
// "graphlift::generator_state(Generator? generator) -> Tensor" and "graphlift::set_generator_state(Generator?
// generator, Tensor state) -> ()": without a generator, of the CPU's default one.
inline constexpr std::string_view kGeneratorState = "graphlift::generator_state.default";
inline constexpr std::string_view kSetGeneratorState = "graphlift::set_generator_state.default";
void register_seeding();  // of these operators, once in a process
int64_t state_size(const at::Generator& generator);

// A generator as an argument of a call; it lives on for graphs that name it. The default one of a device is None.
ir::Arg generator_argument(const at::Generator& generator);
bool names_generator(const std::string& text);
// A new name for a generator on the CPU that the graph makes itself: each thread that runs it has one of its own.
std::string name_of_made_generator();
bool names_made_generator(const std::string& text);
at::Generator named_generator(const std::string& name);

}  // namespace graphlift::torch_layer
