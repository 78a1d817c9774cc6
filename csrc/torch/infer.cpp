// Owns: types of a call's results: the operator's own rule first, else torch's shape functions on meta tensors of the
// hinted sizes. Must not: record nodes.
#include <ATen/EmptyTensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "ops/shape_arg.h"
#include "torch/convert.h"
#include "torch/library_writes.h"
#include "torch/recorder.h"
#include "torch/sym_node.h"

namespace graphlift::torch_layer {

using c10::IValue;

namespace {

std::vector<int64_t> hints(ir::ShapeEnv& env, const ir::Dims& dims) {
  std::vector<int64_t> result;
  for (const ir::Sym& dim : dims) result.push_back(env.specialize(dim));
  return result;
}

// Arguments of a call with meta tensors for stand-ins. Everything symbolic is fixed to its hint.
class MetaArguments {
 public:
  MetaArguments(Recorder& recorder) : recorder_(recorder) {}

  torch::jit::Stack convert(c10::ArrayRef<IValue> arguments) {
    torch::jit::Stack result;
    for (const IValue& value : arguments) result.push_back(convert(value));
    return result;
  }
  // Where eager would put the results.
  ir::Device device() const { return device_.value_or(ir::Device{}); }

 private:
  at::Tensor tensor(const at::Tensor& t) {
    if (!t.defined() || !fake_storage(t)) return t;
    const ir::TensorType& type = recorder_.slot_of(t)->type;
    ir::ShapeEnv& env = recorder_.shapes();
    // A CPU scalar among tensors of another device doesn't decide.
    if (!device_ || (device_->is_cpu() && type.rank() > 0)) device_ = type.device;
    auto strided = at::detail::empty_strided_meta(hints(env, type.sizes), hints(env, type.strides),
                                                  to_torch(type.dtype), c10::kStrided, c10::Device(c10::kMeta), false);
    return at::Tensor(std::move(strided));
  }
  IValue convert(const IValue& value) {
    if (value.isTensor()) return tensor(value.toTensor());
    if (value.isSymInt()) return value.toSymInt().guard_int(__FILE__, __LINE__);
    if (value.isSymFloat()) return to_double(value.toSymFloat());
    if (value.isSymIntList()) {
      std::vector<int64_t> list;
      for (const c10::SymInt& item : value.toSymIntVector()) list.push_back(item.guard_int(__FILE__, __LINE__));
      return IValue(std::move(list));
    }
    if (value.isDevice()) {
      device_ = from_torch(value.toDevice());
      return c10::Device(c10::kMeta);
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (at::Tensor item : value.toTensorList()) list.push_back(tensor(item));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (std::optional<at::Tensor> item : value.toOptionalTensorList())
        list.push_back(item ? std::optional<at::Tensor>(tensor(*item)) : std::nullopt);
      return list;
    }
    return value;
  }

  Recorder& recorder_;
  std::optional<ir::Device> device_;
};

ir::TensorType type_of(const at::Tensor& meta, ir::Device device) {
  ir::TensorType type;
  type.dtype = from_torch(meta.scalar_type());
  type.device = device;
  for (int64_t size : meta.sizes()) type.sizes.emplace_back(size);
  for (int64_t stride : meta.strides()) type.strides.emplace_back(stride);
  type.offset = meta.storage_offset();
  return type;
}

void add_result(const IValue& result, ir::Device device, Types* types, std::vector<ir::Sym>* ints) {
  if (result.isInt()) ints->emplace_back(result.toInt());
  if (result.isTensorList()) {
    for (at::Tensor item : result.toTensorList()) types->push_back(type_of(item, device));
  } else if (result.isTensor() && result.toTensor().defined()) {
    types->push_back(type_of(result.toTensor(), device));
  } else {
    types->push_back(std::nullopt);
  }
}

}  // namespace

// While one lives, calls that reach the recorder come from a shape function of torch's: they work on meta tensors.
class Probe {
 public:
  explicit Probe(Recorder& recorder) : recorder_(recorder), before_(std::exchange(recorder.probing_, true)) {}
  ~Probe() { recorder_.probing_ = before_; }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

 private:
  Recorder& recorder_;
  bool before_;
};

namespace {

// "cuda" without an index is the current device.
void place(Types* types) {
  for (auto& type : *types) {
    if (!type || type->device.is_cpu() || type->device.index >= 0) continue;
    auto kind = static_cast<c10::DeviceType>(type->device.type);
    type->device.index =
        c10::impl::hasDeviceGuardImpl(kind) ? c10::impl::getDeviceGuardImpl(kind)->getDevice().index() : 0;
  }
}

}  // namespace

Recorder::Results Recorder::infer(const c10::OperatorHandle& handle, const OpInfo& info, const ir::ArgList& args,
                                  c10::ArrayRef<IValue> stack) {
  Results results;
  if (info.rule) {
    std::vector<ops::ShapeArg> shape_args;
    shape_args.reserve(args.size());
    for (const ir::Arg& arg : args) shape_args.push_back(ops::shape_arg(arg));
    ops::ShapeCall call{.args = shape_args, .env = *shapes_, .results = results.types};
    call.default_dtype = from_torch(c10::get_default_dtype_as_scalartype());
    if (info.rule->shape(call))
      results.ints = std::move(call.int_results);
    else
      results = infer_by_torch(handle, info, stack);
  } else {
    results = infer_by_torch(handle, info, stack);
  }
  place(&results.types);
  return results;
}

namespace {

// Operators whose types had to come from torch's kernels for the meta device, Python mostly.
class MetaCalls {
 public:
  static MetaCalls& instance() {
    static auto* calls = new MetaCalls;
    return *calls;
  }
  void add(std::string_view op) {
    std::lock_guard lock(mutex_);
    names_.emplace(op);
  }
  std::vector<std::string> names() {
    std::lock_guard lock(mutex_);
    return {names_.begin(), names_.end()};
  }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};

// One call on meta tensors. The C++ shape function of a structured operator is reached through the kernel that all
// backends share: its allocations and its inner out= call come back to the recorder (probe_call). torch's Python
// kernels for the meta device, slow to load and to run, are the last resort.
void call_on_meta(Recorder& recorder, const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack) {
  if (!info.of_torch) {
    recorder.call_kernel_for_meta(handle, stack);
  } else if (info.structured) {
    Probe probe(recorder);
    handle.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional, stack);
  } else if (info.composite_explicit) {
    Probe probe(recorder);
    handle.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, stack);
  } else if (info.decomposes) {
    Probe probe(recorder);
    handle.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, stack);
  } else {
    MetaCalls::instance().add(info.op.str());
    recorder.call_kernel_for_meta(handle, stack);
  }
}

}  // namespace

void Recorder::call_kernel_for_meta(const c10::OperatorHandle& handle, torch::jit::Stack& stack) {
  ModeOff off;
  if (!unobserved_) return handle.callBoxed(stack);
  unobserved_([&] { handle.callBoxed(stack); });
}

std::vector<std::string> meta_operators() { return MetaCalls::instance().names(); }

// In eager the fake implementation of a library's operator doesn't run: its exceptions aren't the program's.
void Recorder::break_for_fake(const std::string& op, const std::string& words) {
  if (words.find("no fake impl registered") != words.npos) break_now("no_fake", op);
  break_now("fake_failed", op + " fails: " + words.substr(0, words.find('\n')));
}

namespace {

// New values of arguments lie as the arguments do.
Types types_of(Recorder& recorder, const std::vector<size_t>& written, c10::ArrayRef<IValue> stack) {
  Types types;
  auto add = [&](const at::Tensor& tensor) {
    ir::TensorType type = recorder.slot_of(tensor)->type;
    type.offset = 0;
    type.requires_grad = false;
    types.emplace_back(std::move(type));
  };
  for (size_t i : written) {
    if (stack[i].isTensor()) add(stack[i].toTensor());
    if (stack[i].isTensorList())
      for (at::Tensor item : stack[i].toTensorList()) add(item);
  }
  return types;
}

}  // namespace

Recorder::Results Recorder::infer_by_torch(const c10::OperatorHandle& handle, const OpInfo& info,
                                           c10::ArrayRef<IValue> stack) {
  if (const auto written = returns_what_it_writes(handle)) return {types_of(*this, *written, stack), {}};
  MetaArguments arguments(*this);
  torch::jit::Stack metas = arguments.convert(stack);
  try {
    call_on_meta(*this, handle, info, metas);
  } catch (const InternalError&) {
    throw;
  } catch (const c10::NotImplementedError&) {
    break_now("data_dependent", handle.schema().name());
  } catch (const std::exception& error) {
    if (!info.of_torch) break_for_fake(handle.schema().name(), error.what());
    // A composition that reads numbers from its arguments.
    if (!std::strstr(error.what(), "on meta tensors")) throw;
    break_now("data_dependent_item", handle.schema().name());
  }
  Results results;
  for (const IValue& result : metas) add_result(result, arguments.device(), &results.types, &results.ints);
  return results;
}

void Recorder::probe_call(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack) {
  const auto& schema = handle.schema();
  if (info.kind == OpKind::Mutating && !info.changes_view) {
    // The shape function has made the result already; writing into it has no effect on shapes.
    std::vector<IValue> written;
    auto arguments = torch::jit::last(stack, schema.arguments().size());
    for (size_t i : info.written) written.push_back(arguments[i]);
    torch::jit::drop(stack, schema.arguments().size());
    for (size_t i = 0; i < schema.returns().size() && i < written.size(); ++i) stack.push_back(written[i]);
    return;
  }
  if (info.structured || info.decomposes) return call_on_meta(*this, handle, info, stack);
  call_kernel_for_meta(handle, stack);
}

}  // namespace graphlift::torch_layer
