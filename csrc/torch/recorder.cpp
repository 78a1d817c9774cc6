#include "torch/recorder.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <atomic>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/gil.h"
#include "ops/traits.h"
#include "torch/convert.h"
#include "torch/expectations.h"
#include "torch/library_writes.h"
#include "torch/number_calls.h"
#include "torch/seeding.h"
#include "torch/sym_node.h"
#include "torch/varying_matmul.h"

namespace graphlift::torch_layer {
namespace {

using c10::IValue;

uint64_t next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// torch hides a symbolic number that became a tensor behind 7777777, nan or true (python_arg_parser).
constexpr int64_t kHidesSymInt = 7777777;

std::optional<ir::Arg> hidden_number(const at::Tensor& tensor) {
  WithGil gil;
  const Ref number = hidden_behind(tensor);
  if (!number) return std::nullopt;
  pybind11::handle handle(number.get());
  if (torch::is_symfloat(handle)) return to_double(handle.cast<c10::SymFloat>());
  if (torch::is_symbool(handle)) return handle.cast<c10::SymBool>().guard_bool(__FILE__, __LINE__);
  if (!torch::is_symint(handle)) return std::nullopt;
  auto sym = to_sym(handle.cast<c10::SymInt>());
  return sym ? std::optional<ir::Arg>(*sym) : std::nullopt;
}

ir::Arg wrapped_number(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case c10::ScalarType::Double: {
      double number = *tensor.const_data_ptr<double>();
      return std::isnan(number) ? hidden_number(tensor).value_or(number) : ir::Arg(number);
    }
    case c10::ScalarType::Long: {
      int64_t number = *tensor.const_data_ptr<int64_t>();
      return number == kHidesSymInt ? hidden_number(tensor).value_or(ir::Sym(number)) : ir::Arg(ir::Sym(number));
    }
    case c10::ScalarType::Bool: {
      bool number = *tensor.const_data_ptr<bool>();
      return number ? hidden_number(tensor).value_or(number) : ir::Arg(number);
    }
    case c10::ScalarType::ComplexDouble:
      return std::complex<double>(*tensor.const_data_ptr<c10::complex<double>>());
    default:
      throw InternalError("a wrapped number of type " + std::string(c10::toString(tensor.scalar_type())));
  }
}

// All tensors among the arguments are wrapped numbers: batching rules of functorch call operators so.
bool only_numbers(c10::ArrayRef<IValue> arguments) {
  bool any = false;
  for (const IValue& value : arguments) {
    if (value.isTensorList() || value.isOptionalTensorList()) return false;
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    if (!value.toTensor().unsafeGetTensorImpl()->is_wrapped_number()) return false;
    any = true;
  }
  return any;
}

bool same_geometry(const ir::TensorType& type, const at::Tensor& tensor) {
  if (to_torch(type.dtype) != tensor.scalar_type() || type.rank() != tensor.dim()) return false;
  auto equal = [](const ir::Sym& a, const c10::SymInt& b) {
    auto sym = to_sym(b);
    return sym && sym->same(a);
  };
  if (!equal(type.offset, tensor.sym_storage_offset())) return false;
  for (int d = 0; d < type.rank(); ++d)
    if (!equal(type.sizes[d], tensor.sym_size(d)) || !equal(type.strides[d], tensor.sym_stride(d))) return false;
  return true;
}

}  // namespace

Recorder::Recorder(ir::ShapeEnv* shapes, OnBreak on_break, WhereNow where, Unobserved unobserved)
    : graph_(std::make_unique<ir::Graph>()),
      shapes_(shapes),
      on_break_(std::move(on_break)),
      where_(std::move(where)),
      unobserved_(std::move(unobserved)),
      mode_object_(make_mode_object(this, &link_)),
      serial_(next_serial()) {}

Recorder::~Recorder() { link_->recorder = nullptr; }

void Recorder::start() {
  take_varying_matmuls();
  if (depth_++ == 0) push_mode(mode_object_.get());
}

void Recorder::stop() {
  GL_CHECK(depth_ > 0, "stop() without start()");
  if (--depth_ == 0) pop_mode(mode_object_.get());
}

void Recorder::call(const c10::OperatorHandle& handle, torch::jit::Stack& stack) {
  try {
    if (on_call && !backward_ && !probing_) {
      WithGil gil;
      on_call(handle);
    }
    dispatch(handle, op_info(handle), stack);
  } catch (const InternalError& error) {
    if (failure_.empty()) failure_ = error.what();
    throw;
  }
}

namespace {

// A library's operator without a kernel for autograd: what its kernels call has the gradients.
bool differentiates_inside(const c10::OperatorHandle& handle, const torch::jit::Stack& stack) {
  using c10::DispatchKey;
  if (!c10::GradMode::is_enabled()) return false;
  for (DispatchKey key : {DispatchKey::Autograd, DispatchKey::AutogradCPU, DispatchKey::AutogradCUDA})
    if (handle.hasKernelForDispatchKey(key)) return false;
  for (const IValue& value : torch::jit::last(stack, handle.schema().arguments().size())) {
    if (value.isTensor() && value.toTensor().requires_grad()) return true;
    if (!value.isTensorList()) continue;
    for (const at::Tensor& item : value.toTensorVector())
      if (item.requires_grad()) return true;
  }
  return false;
}

}  // namespace

void Recorder::dispatch(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack) {
  if (probing_) return probe_call(handle, info, stack);
  if (info.foreach) return each(handle, stack);
  if (call_with_numbers(handle, stack)) return;
  if (info.special && info.special(*this, handle, info, stack)) return;
  if (info.break_kind) break_now(info.break_kind, handle.schema().name());
  if (!info.of_torch) {
    refuse_unknown(handle, info);
    if (differentiates_inside(handle, stack))
      break_now("unsupported_tensor", "one whose gradient the kernel of " + handle.schema().name() + " makes");
  }
  if (info.decomposes && !info.rule && info.of_torch)
    return decompose(handle, stack, c10::DispatchKey::CompositeImplicitAutograd);
  if (info.kind == OpKind::Mutating) return mutate(handle, info, stack);
  if (info.kind == OpKind::View) return view(handle, info, stack);
  return pure(handle, info, stack);
}

// Of a library's operator only what it says for that purpose may run: a kernel for meta. Its other kernels may read
// data or have effects. What it writes lies as before, so that none is needed where it returns nothing else.
void Recorder::refuse_unknown(const c10::OperatorHandle& handle, const OpInfo& info) {
  const auto& schema = handle.schema();
  const bool silent = schema.returns().empty() && info.kind != OpKind::Mutating;
  if (silent || !info.returns_tensors) break_now("opaque_operator", schema.name());
  if (info.functional && returns_what_it_writes(*info.functional)) return;
  if (!handle.hasKernelForDispatchKey(c10::DispatchKey::Meta)) break_now("no_fake", schema.name());
}

void Recorder::decompose(const c10::OperatorHandle& handle, torch::jit::Stack& stack, c10::DispatchKey composition) {
  handle.callBoxedForDispatchKey(composition, stack);
}

// Of many tensors, one by one: each has a new version when it is written to.
void Recorder::each(const c10::OperatorHandle& handle, torch::jit::Stack& stack) {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = keys.excluded_.remove(c10::DispatchKey::ADInplaceOrView);
  const c10::impl::ForceDispatchKeyGuard versioned(keys);
  decompose(handle, stack, c10::DispatchKey::CompositeExplicitAutograd);
}

void Recorder::break_now(const char* kind, const std::string& detail) {
  WithGil gil;
  on_break_(kind, detail);
  GL_CHECK(PyErr_Occurred(), "a graph break sets a Python error");
  python_error error;
  error.persist();
  throw error;
}

std::shared_ptr<Slot> Recorder::slot_of(const at::Tensor& tensor) {
  FakeStorage* storage = fake_storage(tensor);
  if (storage->recording != serial_) break_now("unsupported_tensor", "one that is left over from another capture");
  if (FakeImpl* impl = fake_impl(tensor)) return impl->slot();
  if (same_geometry(storage->base->type, tensor)) return storage->base;
  for (auto& weak : storage->views)
    if (auto slot = weak.lock(); slot && same_geometry(slot->type, tensor)) return slot;
  break_now("unsupported_tensor", "a view that torch made without an operator");
}

ir::ValueRef Recorder::value_of(const at::Tensor& tensor) {
  auto slot = slot_of(tensor);
  refresh(*slot, *fake_storage(tensor));
  return slot->value;
}

void Recorder::refresh(Slot& slot, FakeStorage& storage) {
  if (!slot.parent || slot.generation == storage.generation) return;
  refresh(*slot.parent, storage);
  ir::ArgList args = slot.step.args;
  args[0] = slot.parent->value;
  slot.value = {add_call(slot.step.op, std::move(args), {slot.type}), 0};
  slot.generation = storage.generation;
}

ir::Arg Recorder::tensor_argument(const at::Tensor& tensor) {
  if (fake_storage(tensor)) return value_of(tensor);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return wrapped_number(tensor);
  break_now("unsupported_tensor", "one from outside that was reached inside of a C function");
}

ir::Arg Recorder::argument(const IValue& value, const c10::Type& type) {
  if (value.isGenerator()) return generator_name(value.toGenerator());
  if (value.isSymFloat()) return to_double(value.toSymFloat());
  if (value.isSymBool()) return value.toSymBool().guard_bool(__FILE__, __LINE__);
  return from_ivalue(
      value, type, [this](const at::Tensor& tensor) { return tensor_argument(tensor); },
      [](const c10::SymInt& number) {
        auto sym = to_sym(number);
        return sym ? *sym : ir::Sym(number.guard_int(__FILE__, __LINE__));
      });
}

at::Tensor Recorder::lift_constant(const at::Tensor& tensor) {
  ir::TensorType type;
  type.dtype = from_torch(tensor.scalar_type());
  type.device = from_torch(tensor.device());
  for (int64_t size : tensor.sizes()) type.sizes.emplace_back(size);
  for (int64_t stride : tensor.strides()) type.strides.emplace_back(stride);
  ir::ArgList args{ir::Sym(static_cast<int64_t>(constants_.size()))};
  {
    c10::impl::ExcludeDispatchKeyGuard below(kPythonKeys);
    constants_.push_back(tensor.clone());
  }
  return new_tensor(type, add_simple("graphlift::constant", std::move(args), type));
}

at::Tensor Recorder::lift_number(const at::Tensor& number) {
  const ir::Arg value = wrapped_number(number);
  if (const auto* sym = value.sym(); sym && !sym->is_constant())
    return at::scalar_tensor(c10::Scalar(to_sym_int(*shapes_, *sym)), number.options());
  if (const auto* real = std::get_if<double>(&value)) return lift_constant(c10::scalar_to_tensor(*real));
  return lift_constant(number);
}

at::Tensor Recorder::new_tensor(const ir::TensorType& type, ir::ValueRef value) {
  return make_fake(*shapes_, serial_, type, value);
}

ir::Node* Recorder::add_call(ir::Op op, ir::ArgList args, Types types) {
  ir::SourceLine line;
  if (where_) {
    WithGil gil;
    line = where_();
  }
  ir::Node* node = graph_->add_call(op, std::move(args), std::move(types), std::move(line));
  node->backward = backward_;
  if (!backward_ && !checkpoints_.empty()) node->checkpoint = checkpoints_.back();
  // The engine runs without grad mode; only a checkpoint's forward that is made again switches it on.
  node->must_recompute = backward_ && c10::GradMode::is_enabled();
  engine_ran_ |= !backward_ && torch::autograd::get_current_graph_task_id() >= 0;
  ++calls_;
  return node;
}

ir::ValueRef Recorder::add_simple(std::string_view op, ir::ArgList args, ir::TensorType type) {
  return {add_call(ir::Op(op), std::move(args), {std::move(type)}), 0};
}

ir::Node* Recorder::record(const c10::OperatorHandle& handle, const OpInfo& info, c10::ArrayRef<IValue> stack) {
  if (is_scouting() && ops::traits(info.op).effect == ops::Effect::Write)
    break_now("branches", "calls " + handle.schema().name() + ", which may do more than compute");
  const auto& parameters = handle.schema().arguments();
  ir::ArgList args;
  args.reserve(parameters.size());
  const bool numbers = only_numbers(stack);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool lifted = numbers && stack[i].isTensor() && stack[i].toTensor().defined();
    args.push_back(lifted ? ir::Arg(value_of(lift_number(stack[i].toTensor())))
                          : argument(stack[i], *parameters[i].real_type()));
  }
  Results results = infer(handle, info, args, stack);
  ints_ = std::move(results.ints);
  ir::Node* node = add_call(info.op, std::move(args), std::move(results.types));
  if (info.random) keep_random(node);
  return node;
}

void Recorder::keep_random(ir::Node* node) {
  if (is_scouting()) break_now("branches", "draws random numbers");
  kept_.insert(node);
}

void Recorder::record_expectation(ir::ValueRef value, bool truth) {
  kept_.insert(add_call(ir::Op(kExpect), {std::move(value), truth}, {}));
}

void Recorder::record_seed(ir::Arg generator, int64_t seed) {
  keep_random(add_call(ir::Op(kManualSeed), {std::move(generator), ir::Sym(seed)}, {}));
}

void Recorder::note_generator(const at::Generator& generator) {
  made_generators_.emplace_back(generator, name_of_made_generator());
}

ir::Arg Recorder::generator_name(const at::Generator& generator) const {
  for (const auto& [made, name] : made_generators_)
    if (made == generator) return name;
  return generator_argument(generator);
}

at::Tensor Recorder::record_state(const at::Generator& generator) {
  ir::TensorType type;
  type.dtype = from_torch(c10::kByte);
  type.sizes = {ir::Sym(state_size(generator))};
  type.strides = {ir::Sym(1)};
  ir::Node* node = add_call(ir::Op(kGeneratorState), {generator_name(generator)}, {type});
  keep_random(node);
  return new_tensor(type, {node, 0});
}

void Recorder::record_set_state(const at::Generator& generator, const at::Tensor& state) {
  keep_random(add_call(ir::Op(kSetGeneratorState), {generator_name(generator), value_of(state)}, {}));
}

void Recorder::push_results(const c10::FunctionSchema& schema, ir::Node* node, torch::jit::Stack& stack) {
  torch::jit::drop(stack, schema.arguments().size());
  int index = 0;
  auto next = [&] {
    int i = index++;
    const auto& type = node->outputs[static_cast<size_t>(i)];
    return type ? new_tensor(*type, {node, i}) : at::Tensor();
  };
  size_t next_int = 0;
  for (const c10::Argument& result : schema.returns()) {
    auto kind = result.type()->kind();
    if (kind == c10::TypeKind::IntType || kind == c10::TypeKind::SymIntType) {
      ++index;
      stack.emplace_back(to_sym_int(*shapes_, ints_.at(next_int++)));
      continue;
    }
    if (kind != c10::TypeKind::ListType) {
      stack.emplace_back(next());
      continue;
    }
    // The one list among the results takes what the others leave.
    size_t length = node->outputs.size() - (schema.returns().size() - 1);
    c10::List<at::Tensor> list;
    for (size_t i = 0; i < length; ++i) list.push_back(next());
    stack.emplace_back(std::move(list));
  }
}

void Recorder::ask(const c10::OperatorHandle& handle, torch::jit::Stack& stack) {
  auto backend = c10::DispatchKey::CPU;
  for (const IValue& value : torch::jit::last(stack, handle.schema().arguments().size()))
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_cuda()) backend = c10::DispatchKey::CUDA;
  try {
    handle.redispatchBoxed(c10::DispatchKeySet(backend), &stack);
  } catch (const c10::Error&) {
    break_now("data_dependent", handle.schema().name());
  }
}

void Recorder::pure(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack) {
  if (!info.returns_tensors) return ask(handle, stack);
  size_t count = handle.schema().arguments().size();
  ir::Node* node = record(handle, info, torch::jit::last(stack, count));
  push_results(handle.schema(), node, stack);
}

}  // namespace graphlift::torch_layer
