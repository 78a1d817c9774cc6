// Owns: what the recorder knows about an operator: kind, functional counterpart, rule. Looked up once per operator.
// Must not: record, or know tensors.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "ops/shape_rule.h"

namespace graphlift::torch_layer {

class Recorder;
struct OpInfo;

// Handles a call in its own way. False: it is treated like any other.
using SpecialCall = bool (*)(Recorder&, const c10::OperatorHandle&, const OpInfo&, torch::jit::Stack&);

enum class OpKind : uint8_t {
  Pure,      // reads arguments, makes new tensors
  View,      // results share the first argument's memory
  Mutating,  // writes into arguments
};

struct OpInfo {
  ir::Op op;
  OpKind kind = OpKind::Pure;
  const ops::OpRow* rule = nullptr;
  SpecialCall special = nullptr;
  const char* break_kind = nullptr;   // always a graph break of this kind
  bool of_torch = true;               // torch's own: its kernels are known to do what torch says
  bool decomposes = false;            // composed of other operators, whatever the backend
  bool composite_explicit = false;    // has a kernel for all backends, made of other operators
  bool foreach = false;               // torch's kernel for all backends calls the single operator for each item
  bool structured = false;            // has torch's C++ shape function
  bool changes_view = false;          // t_() and the like: changes sizes and strides of its argument in place
  bool random = false;                // draws from a generator
  bool returns_tensors = true;        // at least one result is a tensor or a list of tensors; the others are ints
  std::vector<size_t> written;        // arguments that are written
  bool writes_results_alone = false;  // nobody reads what they held: out=
  // Mutating: the operator that computes instead of writing. Its results: own results of this one, then the new values
  // of `written`. functional_arguments[i] is the argument of this operator for the i-th of the functional one.
  std::optional<c10::OperatorHandle> functional;
  std::vector<size_t> functional_arguments;
};

bool is_of_torch(std::string_view op);
const OpInfo& op_info(const c10::OperatorHandle& handle);

// Rows of special_ops.cpp.
SpecialCall find_special(std::string_view name);
const char* find_break(std::string_view name);

}  // namespace graphlift::torch_layer
