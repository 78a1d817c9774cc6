// Owns: ir::Sym behind torch's SymInt: a SymNodeImpl whose arithmetic stays in ir:: and whose decisions become guards.
// Must not: know tensors or the recorder. No Python, no sympy.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymBool.h>
#include <c10/core/SymFloat.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/csrc/utils/pybind.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ir/sym.h"
#include "ir/type.h"
#include "torch/number_values.h"

namespace graphlift::torch_layer {

// A float that the graph computes: a number from outside that varies, or one read from a tensor, and what was made of
// them. `tensor`: its stand-in, a double on the CPU without dimensions.
struct GraphFloat {
  at::Tensor tensor;
  bool of_data = false;                  // nobody knows its value while capturing
  std::vector<int> inputs = {};          // primals that it is made of
  std::optional<OfInput> of_input = {};  // where decisions on it can be guarded
  bool maybe_int = false;                // in Python it may be an int: max(1, x)
  bool rounded = false;  // its last digit may be another one than Python's, which the program itself must not see
  std::function<bool()> positive = {};  // it is, which is guarded; null: not known
  std::function<double()> fix = {};  // its value now, which the recording then relies on; throws when nobody knows it
};
using GraphFloatRef = std::shared_ptr<const GraphFloat>;
pybind11::object to_python_float(ir::ShapeEnv& env, GraphFloatRef value);  // a torch.SymFloat
GraphFloatRef graph_float(const c10::SymFloat& value);                     // null: a known number, or no node of ours
// Of a float that is arithmetic on sizes: the same, computed in the graph from here on. Null: another one, or nothing
// records on this thread.
GraphFloatRef graph_float_of_sizes(const c10::SymFloat& value);

c10::SymInt to_sym_int(ir::ShapeEnv& env, const ir::Sym& value);
std::vector<c10::SymInt> to_sym_ints(ir::ShapeEnv& env, const ir::Dims& values);
// Decided when somebody asks.
c10::SymBool is_contiguous(ir::ShapeEnv& env, const ir::TensorType& type);
// Constants pass; a node that is not ours (another tracer's) has no answer.
std::optional<ir::Sym> to_sym(const c10::SymInt& value);
// The number that a symbolic float or int node carries; records what it relied on.
double to_double(const c10::SymFloat& value);

}  // namespace graphlift::torch_layer
