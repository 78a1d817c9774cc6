// Owns: functional counterparts of operators that a library registered and that write into arguments: operators of ours
// that write into copies and return them, registered with torch when they are first asked for.
// Must not: record, or run an operator while capturing.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <vector>

namespace graphlift::torch_layer {

// Results: those of the operator that are no arguments of its, then the new values of what it writes, in order. Nothing
// for an operator that returns other things than tensors or writes into optional ones.
std::optional<c10::OperatorHandle> functional_of_library(const c10::FunctionSchema& schema);

// The arguments whose new values are all that such a counterpart returns; nothing for any other operator.
std::optional<std::vector<size_t>> returns_what_it_writes(const c10::OperatorHandle& functional);

}  // namespace graphlift::torch_layer
