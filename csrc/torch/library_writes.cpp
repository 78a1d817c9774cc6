// Owns: see library_writes.h.
#include "torch/library_writes.h"

#include <ATen/ATen.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace graphlift::torch_layer {
namespace {

using c10::Argument;
using c10::FunctionSchema;
using c10::IValue;
using c10::OperatorHandle;

struct Counterpart {
  c10::OperatorName of;
  std::vector<size_t> written;
  bool alone;  // the operator returns nothing of its own
};

std::mutex& table_mutex() {
  static auto* made = new std::mutex;
  return *made;
}

// By name. Addresses are stable.
std::unordered_map<std::string, Counterpart>& counterparts() {
  static auto* all = new std::unordered_map<std::string, Counterpart>;
  return *all;
}

bool is_written_to(const Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

// Laid out as the tensor itself: a kernel may look at strides.
at::Tensor copy_of(const at::Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()).copy_(tensor);
}

IValue copy_of(const IValue& value) {
  if (value.isTensor()) return copy_of(value.toTensor());
  c10::List<at::Tensor> copies;
  for (at::Tensor item : value.toTensorList()) copies.push_back(copy_of(item));
  return copies;
}

class WriteIntoCopies final : public c10::OperatorKernel {
 public:
  explicit WriteIntoCopies(const Counterpart& counterpart) : counterpart_(counterpart) {}

  void operator()(const OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(counterpart_.of.name.c_str(),
                                                                   counterpart_.of.overload_name.c_str());
    const size_t first = stack->size() - op.schema().arguments().size();
    std::vector<IValue> copies;
    for (size_t i : counterpart_.written) copies.push_back((*stack)[first + i] = copy_of((*stack)[first + i]));
    op.callBoxed(stack);
    std::vector<IValue> results(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
    stack->resize(first);
    for (size_t i = 0; i < results.size(); ++i)
      if (!op.schema().returns()[i].alias_info()) stack->push_back(std::move(results[i]));
    stack->insert(stack->end(), copies.begin(), copies.end());
  }

 private:
  const Counterpart& counterpart_;
};

bool is_one_tensor(const c10::Type& type) { return type.kind() == c10::TypeKind::TensorType; }

bool is_tensor_or_list(const c10::Type& type) {
  return is_one_tensor(type) || (type.kind() == c10::TypeKind::ListType && is_one_tensor(*type.containedType(0)));
}

Argument without_alias(const Argument& argument) {
  return {argument.name(),          argument.type(),       argument.real_type(), argument.N(),
          argument.default_value(), argument.kwarg_only(), std::nullopt};
}

std::string local_name(const FunctionSchema& schema) {
  std::string name = "write_" + schema.name();
  if (!schema.overload_name().empty()) name += "_" + schema.overload_name();
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

torch::Library& library() {
  static auto* made = new torch::Library(torch::Library::FRAGMENT, "graphlift", std::nullopt, __FILE__, __LINE__);
  return *made;
}

// A library may be taken back and register another operator under the same name.
OperatorHandle enter(const FunctionSchema& schema, std::vector<Argument> arguments, std::vector<Argument> results,
                     Counterpart counterpart) {
  const std::lock_guard lock(table_mutex());
  std::string name = "graphlift::" + local_name(schema);
  while (c10::Dispatcher::singleton().findSchema({name, ""})) name += "_";
  const Counterpart& kept = counterparts().emplace(name, std::move(counterpart)).first->second;
  library().def(FunctionSchema(name, "", std::move(arguments), std::move(results)));
  library().impl(name.c_str(),
                 torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                                 torch::CppFunction::makeFromBoxedFunctor(std::make_unique<WriteIntoCopies>(kept))));
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "");
}

}  // namespace

std::optional<OperatorHandle> functional_of_library(const FunctionSchema& schema) {
  Counterpart counterpart{{schema.name(), schema.overload_name()}, {}, true};
  std::vector<Argument> arguments, results;
  for (const Argument& result : schema.returns()) {
    if (result.alias_info()) continue;
    if (!is_one_tensor(*result.real_type())) return std::nullopt;
    counterpart.alone = false;
    results.push_back(result);
  }
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const Argument& argument = schema.arguments()[i];
    arguments.push_back(without_alias(argument));
    if (!is_written_to(argument)) continue;
    if (!is_tensor_or_list(*argument.real_type())) return std::nullopt;
    counterpart.written.push_back(i);
    results.emplace_back("", argument.type(), argument.real_type());
  }
  return enter(schema, std::move(arguments), std::move(results), std::move(counterpart));
}

std::optional<std::vector<size_t>> returns_what_it_writes(const OperatorHandle& functional) {
  const std::lock_guard lock(table_mutex());
  const auto found = counterparts().find(functional.schema().name());
  if (found == counterparts().end() || !found->second.alone) return std::nullopt;
  return found->second.written;
}

}  // namespace graphlift::torch_layer
