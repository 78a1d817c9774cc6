// Owns: batch norms that change running statistics although their schema says nothing of it.
// Must not: know of other operators.
#include "torch/convert.h"
#include "torch/recorder.h"
#include "torch/special_ops.h"

namespace graphlift::torch_layer {
namespace {

using torch::jit::Stack;

// (input, weight, bias, running_mean, running_var, training, momentum, eps) of both operators.
constexpr size_t kArguments = 8, kRunningMean = 3, kRunningVar = 4, kTraining = 5;

bool updates_statistics(const Stack& stack) {
  const c10::IValue& mean = torch::jit::peek(stack, kRunningMean, kArguments);
  bool has_mean = mean.isTensor() && mean.toTensor().defined();
  return has_mean && torch::jit::peek(stack, kTraining, kArguments).toBool();
}

// running * (1 - momentum) + batch * momentum
ir::ValueRef moved(Recorder& recorder, ir::ValueRef running, ir::ValueRef batch, double momentum) {
  ir::TensorType type = recorder.graph().type(running);
  type.offset = 0;
  ir::ValueRef kept = recorder.add_simple("aten::mul.Tensor", {running, 1 - momentum}, type);
  ir::ValueRef added = recorder.add_simple("aten::mul.Tensor", {batch, momentum}, type);
  return recorder.add_simple("aten::add.Tensor", {kept, added, ir::Sym(1)}, type);
}

// The unbiased variance behind 1 / sqrt(var + eps).
ir::ValueRef variance_of(Recorder& recorder, ir::ValueRef inverse_std, const ir::TensorType& input, double eps) {
  ir::TensorType type = recorder.graph().type(inverse_std);
  ir::Sym count = input.numel();
  int64_t channels = recorder.shapes().specialize(input.sizes[1]);
  double n = static_cast<double>(recorder.shapes().specialize(count)) / static_cast<double>(channels);
  ir::ValueRef squared = recorder.add_simple("aten::pow.Tensor_Scalar", {inverse_std, ir::Sym(-2)}, type);
  ir::ValueRef biased = recorder.add_simple("aten::sub.Tensor", {squared, eps, ir::Sym(1)}, type);
  return recorder.add_simple("aten::mul.Tensor", {biased, n / (n - 1)}, type);
}

void write(Recorder& recorder, const Stack& arguments, size_t index, ir::ValueRef value) {
  recorder.write(arguments[index].toTensor(), value);
}

}  // namespace

bool native_batch_norm(Recorder& recorder, const c10::OperatorHandle&, const OpInfo&, Stack& stack) {
  if (!updates_statistics(stack)) return false;
  static const auto functional =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_native_batch_norm_legit_functional", "");
  auto last = torch::jit::last(stack, kArguments);
  Stack arguments(last.begin(), last.end());
  ir::Node* node = recorder.record(functional, op_info(functional), arguments);
  torch::jit::drop(stack, kArguments);
  for (int i = 0; i < 3; ++i) stack.emplace_back(recorder.new_tensor(*node->outputs[i], {node, i}));
  write(recorder, arguments, kRunningMean, {node, 3});
  write(recorder, arguments, kRunningVar, {node, 4});
  return true;
}

bool cudnn_batch_norm(Recorder& recorder, const c10::OperatorHandle& handle, const OpInfo& info, Stack& stack) {
  if (!updates_statistics(stack)) return false;
  auto last = torch::jit::last(stack, kArguments);
  Stack arguments(last.begin(), last.end());
  Stack pure = arguments;
  pure[kRunningMean] = pure[kRunningVar] = c10::IValue();
  ir::Node* node = recorder.record(handle, info, pure);
  recorder.push_results(handle.schema(), node, stack);
  double momentum = arguments[6].toDouble(), eps = arguments[7].toDouble();
  const ir::TensorType& input = recorder.slot_of(arguments[0].toTensor())->type;
  ir::ValueRef variance = variance_of(recorder, {node, 2}, input, eps);
  auto update = [&](size_t index, ir::ValueRef batch) {
    ir::ValueRef running = recorder.value_of(arguments[index].toTensor());
    write(recorder, arguments, index, moved(recorder, running, batch, momentum));
  };
  update(kRunningMean, {node, 1});
  update(kRunningVar, variance);
  return true;
}

}  // namespace graphlift::torch_layer
