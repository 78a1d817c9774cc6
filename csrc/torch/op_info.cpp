#include "torch/op_info.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>

#include "torch/convert.h"
#include "torch/library_writes.h"

namespace graphlift::torch_layer {
namespace {

using c10::Argument;
using c10::FunctionSchema;
using c10::OperatorHandle;

bool is_written(const Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

bool is_tensor_type(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  if (type.kind() == c10::TypeKind::ListType || type.kind() == c10::TypeKind::OptionalType)
    return is_tensor_type(*type.containedType(0));
  return false;
}

bool has_tensor_result(const FunctionSchema& schema) {
  bool any = false;
  for (const Argument& result : schema.returns()) {
    const c10::Type& type = *result.type();
    any |= is_tensor_type(type);
    if (!is_tensor_type(type) && type.kind() != c10::TypeKind::IntType && type.kind() != c10::TypeKind::SymIntType)
      return false;
  }
  return any;
}

// Overloads by operator name.
using Overloads = std::unordered_map<std::string, std::vector<std::string>>;
const Overloads& overloads() {
  static const Overloads* table = [] {
    auto* made = new Overloads;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
      (*made)[name.name].push_back(name.overload_name);
    return made;
  }();
  return *table;
}

// The arguments of `of` that `candidate` takes, in its order; nothing when one is missing or of another type.
std::optional<std::vector<size_t>> match_arguments(const FunctionSchema& of, const FunctionSchema& candidate,
                                                   bool drop_written) {
  std::vector<size_t> result;
  const auto& from = of.arguments();
  for (const Argument& wanted : candidate.arguments()) {
    if (is_written(wanted)) return std::nullopt;
    bool found = false;
    for (size_t i = 0; i < from.size() && !found; ++i) {
      if (from[i].name() != wanted.name() || *from[i].real_type() != *wanted.real_type()) continue;
      if (drop_written && is_written(from[i])) continue;
      result.push_back(i);
      found = true;
    }
    if (!found) return std::nullopt;
  }
  size_t expected = from.size();
  if (drop_written)
    for (const Argument& argument : from) expected -= is_written(argument);
  if (result.size() != expected) return std::nullopt;
  return result;
}

struct Functional {
  OperatorHandle handle;
  std::vector<size_t> arguments;
};

std::optional<Functional> try_functional(const FunctionSchema& schema, const std::string& name,
                                         const std::string& overload, bool drop_written) {
  auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle) return std::nullopt;
  auto arguments = match_arguments(schema, handle->schema(), drop_written);
  if (!arguments) return std::nullopt;
  return Functional{*handle, std::move(*arguments)};
}

// Everything that is written is where results go, and is read by no one: max.dim_max, sort.values.
bool writes_results_alone(const FunctionSchema& schema) {
  return std::all_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const Argument& argument) { return !is_written(argument) || argument.is_out(); });
}

// add_.Tensor -> add.Tensor; add.out -> add.Tensor; _native_batch_norm_legit -> _native_batch_norm_legit_functional.
std::optional<Functional> find_functional(const FunctionSchema& schema) {
  std::string name = schema.name();
  bool out = schema.overload_name().find("out") != std::string::npos || writes_results_alone(schema);
  std::vector<std::string> names;
  if (!out && name.ends_with("_") && !name.ends_with("__")) names.push_back(name.substr(0, name.size() - 1));
  if (!out && !names.empty()) names.push_back(names.back() + "_functional");
  names.push_back(name + "_functional");
  names.push_back(name);
  for (const std::string& candidate : names) {
    if (auto found = try_functional(schema, candidate, schema.overload_name(), out)) return found;
    auto listed = overloads().find(candidate);
    if (listed == overloads().end()) continue;
    for (const std::string& overload : listed->second)
      if (auto found = try_functional(schema, candidate, overload, out)) return found;
  }
  return std::nullopt;
}

std::unique_ptr<OpInfo> make_info(const OperatorHandle& handle) {
  const FunctionSchema& schema = handle.schema();
  auto info = std::make_unique<OpInfo>();
  info->op = op_of(handle);
  info->rule = ops::find_op(info->op);
  info->special = find_special(info->op.str());
  info->break_kind = find_break(info->op.str());
  info->of_torch = is_of_torch(schema.name());
  info->decomposes = handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  info->composite_explicit = handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
  info->foreach = info->composite_explicit && info->op.str().starts_with("aten::_foreach_");
  info->structured = handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
  info->changes_view = handle.hasTag(at::Tag::inplace_view);
  info->random = handle.hasTag(at::Tag::nondeterministic_seeded);
  info->returns_tensors = schema.returns().empty() || has_tensor_result(schema);
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (is_written(arguments[i])) info->written.push_back(i);
  bool aliases = false;
  for (const Argument& result : schema.returns()) aliases |= result.alias_info() != nullptr;
  if (!info->written.empty()) {
    info->kind = OpKind::Mutating;
    info->writes_results_alone = writes_results_alone(schema);
    if (!info->of_torch) {
      info->functional = functional_of_library(schema);
      for (size_t i = 0; i < arguments.size(); ++i) info->functional_arguments.push_back(i);
    } else if (auto functional = find_functional(schema)) {
      info->functional = functional->handle;
      info->functional_arguments = std::move(functional->arguments);
    }
  } else if (aliases) {
    info->kind = OpKind::View;
  }
  return info;
}

}  // namespace

bool is_of_torch(std::string_view op) { return op.starts_with("aten::") || op.starts_with("prims::"); }

const OpInfo& op_info(const OperatorHandle& handle) {
  static std::mutex mutex;
  static auto* table = new std::unordered_map<const FunctionSchema*, std::unique_ptr<OpInfo>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto& slot = (*table)[&handle.schema()];
  if (!slot) slot = make_info(handle);
  return *slot;
}

}  // namespace graphlift::torch_layer
