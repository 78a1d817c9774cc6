// Owns: operators that the recorder treats in a way of their own, one row each, and operators that need data.
// Must not: hold rules that other operators could share (aliases.cpp, infer.cpp).
#include "torch/special_ops.h"

#include <ATen/ops/eye.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <string_view>
#include <unordered_map>

#include "torch/convert.h"
#include "torch/recorder.h"
#include "torch/sym_node.h"

namespace graphlift::torch_layer {
namespace {

using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

// The same content under a new tensor: no node.
bool share(Recorder& recorder, const OperatorHandle&, const OpInfo&, Stack& stack) {
  at::Tensor self = torch::jit::pop(stack).toTensor();
  if (!fake_storage(self)) {
    (void)recorder.tensor_argument(self);  // breaks unless it is a number
    self = recorder.lift_number(self);
  }
  stack.emplace_back(make_fake_view(recorder.shapes(), self, recorder.slot_of(self)));
  return true;
}

// torch.tensor(...) and the like: data made in Python enters the program here.
bool lift(Recorder& recorder, const OperatorHandle&, const OpInfo&, Stack& stack) {
  at::Tensor self = torch::jit::pop(stack).toTensor();
  if (!fake_storage(self)) {
    c10::impl::ExcludeDispatchKeyGuard below(kPythonKeys);  // a real copy, not a recorded one
    at::Tensor copy = self.clone();
    self = recorder.lift_constant(copy);
  }
  stack.emplace_back(self);
  return true;
}

// A number of a constant is known; any other needs data.
bool read_number(Recorder& recorder, const OperatorHandle& handle, const OpInfo&, Stack& stack) {
  at::Tensor self = torch::jit::peek(stack, 0, 1).toTensor();
  at::Tensor real = self;
  if (fake_storage(self)) {
    ir::ValueRef value = recorder.value_of(self);
    if (value.node->op != ir::Op("graphlift::constant"))
      recorder.break_now("data_dependent_item", handle.schema().name());
    real = recorder.constants()[static_cast<size_t>(value.node->args[0].sym()->constant())];
  }
  torch::jit::drop(stack, 1);
  c10::impl::ExcludeDispatchKeyGuard below(kPythonKeys);
  stack.emplace_back(real.item());
  return true;
}

// Marks of the profiler: they happen while capturing and are no part of the program.
bool pass_through(Recorder&, const OperatorHandle& handle, const OpInfo&, Stack& stack) {
  c10::impl::ExcludeDispatchKeyGuard below(kPythonKeys);
  handle.callBoxed(stack);
  return true;
}

// Conjugate and negative views are made at once: no bit is set on a stand-in.
template <const char* op>
bool materialize(Recorder& recorder, const OperatorHandle&, const OpInfo&, Stack& stack) {
  static const auto pure = c10::Dispatcher::singleton().findSchemaOrThrow(op, "");
  recorder.pure(pure, op_info(pure), stack);
  return true;
}
constexpr char kConj[] = "aten::_conj_physical";
constexpr char kNeg[] = "aten::neg";

// Nothing that a recording needs.
bool drop_call(Recorder&, const OperatorHandle& handle, const OpInfo&, Stack& stack) {
  torch::jit::drop(stack, handle.schema().arguments().size());
  return true;
}

// index with a boolean mask has a result of unknown size.
bool index(Recorder& recorder, const OperatorHandle& handle, const OpInfo&, Stack& stack) {
  const IValue& indices = torch::jit::peek(stack, 1, 2);
  for (const IValue& item : indices.toListRef()) {
    if (!item.isTensor() || !item.toTensor().defined()) continue;
    auto dtype = item.toTensor().scalar_type();
    if (dtype == c10::ScalarType::Bool || dtype == c10::ScalarType::Byte)
      recorder.break_now("data_dependent", handle.schema().name() + " with a mask");
  }
  return false;
}

// Zeros that torch's formulas make without memory.
bool efficient_zeros(Recorder&, const OperatorHandle&, const OpInfo&, Stack& stack) {
  static const auto zeros = c10::Dispatcher::singleton().findSchemaOrThrow("aten::zeros", "");
  zeros.callBoxed(stack);
  return true;
}

// A factory's out= is what the factory makes, written. One that has to grow needs memory of its own.
bool eye_out(Recorder& recorder, const OperatorHandle& handle, const OpInfo&, Stack& stack) {
  const size_t numbers = handle.schema().arguments().size() - 1;
  const at::Tensor out = torch::jit::pop(stack).toTensor();
  const c10::SymInt rows = torch::jit::peek(stack, 0, numbers).toSymInt();
  const c10::SymInt columns = torch::jit::peek(stack, numbers - 1, numbers).toSymInt();
  torch::jit::drop(stack, numbers);
  if (!fake_storage(out) || out.dim() != 2 || out.sym_size(0) != rows || out.sym_size(1) != columns)
    recorder.break_now("unsupported_tensor", "one that " + handle.schema().name() + " writes to");
  recorder.write(out, recorder.value_of(at::eye_symint(rows, columns, out.options())));
  stack.emplace_back(out);
  return true;
}

// The stand-in whose memory is replaced: made here, and nothing else lies on its memory. Breaks on any other.
FakeImpl* replaceable(Recorder& recorder, const OperatorHandle& handle, const at::Tensor& self, bool shared = false) {
  FakeImpl* impl = fake_storage(self) && fake_storage(self)->primal < 0 ? fake_impl(self) : nullptr;
  if (!impl || impl->given_data() || self.requires_grad() || (!shared && self.storage().use_count() > 1))
    recorder.break_now("unsupported_tensor", "one whose memory " + handle.schema().name() + " replaces");
  return impl;
}

// set_(source): from now on it lies where the source lies.
bool set_memory(Recorder& recorder, const OperatorHandle& handle, const OpInfo&, Stack& stack) {
  const at::Tensor source = torch::jit::peek(stack, 1, 2).toTensor(), self = torch::jit::peek(stack, 0, 2).toTensor();
  FakeImpl* impl = replaceable(recorder, handle, self, /*shared=*/true);
  FakeImpl* from = fake_storage(source) ? fake_impl(source) : nullptr;
  if (!from || source.requires_grad() || source.dtype() != self.dtype() || source.device() != self.device())
    recorder.break_now("unsupported_tensor", "one whose memory " + handle.schema().name() + " replaces");
  impl->become(*from);
  torch::jit::drop(stack, 1);
  return true;
}

// resize_(sizes): the first elements of its memory, or new memory where it had none.
bool resize(Recorder& recorder, const OperatorHandle& handle, const OpInfo&, Stack& stack) {
  const at::Tensor self = torch::jit::peek(stack, 0, 3).toTensor();
  FakeImpl* impl = replaceable(recorder, handle, self);
  const auto slot = impl->slot();
  const bool plain = torch::jit::peek(stack, 2, 3).isNone() && slot == fake_storage(self)->base &&
                     self.is_contiguous() && self.storage_offset() == 0;
  ir::TensorType type = slot->type;
  type.sizes.clear();
  for (const IValue& size : torch::jit::peek(stack, 1, 3).toListRef()) {
    const auto sym = to_sym(size.toSymInt());
    type.sizes.push_back(sym ? *sym : ir::Sym(size.toSymInt().guard_int(__FILE__, __LINE__)));
  }
  type.strides = ir::contiguous_strides(type.sizes);
  const int64_t before = recorder.shapes().specialize(slot->type.numel());
  const int64_t behind = recorder.shapes().specialize(type.numel());
  if (!plain || (behind > before && before > 0))
    recorder.break_now("unsupported_tensor", "one that " + handle.schema().name() + " lays out anew");
  ir::ArgList sizes(type.sizes.begin(), type.sizes.end()), strides(type.strides.begin(), type.strides.end());
  const ir::ValueRef value =
      before == 0 && behind > 0
          ? recorder.add_simple("aten::empty.memory_format",
                                {std::move(sizes), type.dtype, ir::None{}, type.device, ir::None{}, ir::None{}}, type)
          : recorder.add_simple("aten::as_strided.default",
                                {recorder.value_of(self), std::move(sizes), std::move(strides), ir::Sym(0)}, type);
  const at::Tensor made = recorder.new_tensor(type, value);
  impl->become(*fake_impl(made));
  torch::jit::drop(stack, 2);
  return true;
}

struct SpecialRow {
  std::string_view op;
  SpecialCall call;
};
constexpr SpecialRow kSpecial[] = {
    {"aten::detach.default", share},
    {"aten::alias.default", share},
    {"aten::lift_fresh.default", lift},
    {"aten::lift.default", lift},
    {"aten::_local_scalar_dense.default", read_number},
    {"aten::_conj.default", materialize<kConj>},
    {"aten::_neg_view.default", materialize<kNeg>},
    {"aten::_efficientzerotensor.default", efficient_zeros},
    {"aten::eye.out", eye_out},
    {"aten::eye.m_out", eye_out},
    {"aten::index.Tensor", index},
    {"aten::native_batch_norm.default", native_batch_norm},
    {"aten::cudnn_batch_norm.default", cudnn_batch_norm},
    {"aten::record_stream.default", drop_call},
    {"aten::set_.source_Tensor", set_memory},
    {"aten::resize_.default", resize},
};

struct BreakRow {
  std::string_view op;
  const char* kind;
};
constexpr BreakRow kBreaks[] = {
    {"aten::set_.source_Storage", "unsupported_tensor"},
    {"aten::set_.source_Storage_storage_offset", "unsupported_tensor"},
    {"aten::set_.source_Tensor_storage_offset", "unsupported_tensor"},
    {"aten::set_.default", "unsupported_tensor"},
    {"aten::resize_as_.default", "unsupported_tensor"},
    {"aten::equal.default", "data_dependent"},
    {"aten::nonzero.default", "data_dependent"},
    {"aten::masked_select.default", "data_dependent"},
    {"aten::_unique.default", "data_dependent"},
    {"aten::_unique2.default", "data_dependent"},
    {"aten::unique_dim.default", "data_dependent"},
    {"aten::unique_consecutive.default", "data_dependent"},
    {"aten::unique_dim_consecutive.default", "data_dependent"},
    {"aten::bincount.default", "data_dependent"},
    {"aten::repeat_interleave.Tensor", "data_dependent"},
    {"aten::allclose.default", "data_dependent"},
    {"aten::linalg_lstsq.default", "data_dependent"},
    {"aten::quantize_per_tensor.default", "unsupported_tensor"},
    {"aten::quantize_per_tensor.tensor_qparams", "unsupported_tensor"},
    {"aten::quantize_per_tensor.tensors", "unsupported_tensor"},
    {"aten::quantize_per_tensor_dynamic.default", "unsupported_tensor"},
    {"aten::quantize_per_channel.default", "unsupported_tensor"},
};

}  // namespace

SpecialCall find_special(std::string_view name) {
  if (name.starts_with("profiler::")) return pass_through;
  for (const SpecialRow& row : kSpecial)
    if (row.op == name) return row.call;
  return nullptr;
}

const char* find_break(std::string_view name) {
  for (const BreakRow& row : kBreaks)
    if (row.op == name) return row.kind;
  return nullptr;
}

}  // namespace graphlift::torch_layer
