// Owns: see silent_writes.h.
#include "torch/silent_writes.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <mutex>
#include <vector>

#include "backend/backend.h"

namespace graphlift::torch_layer {
namespace {

constexpr auto kKey = c10::DispatchKey::ADInplaceOrView;

void note(const c10::IValue& value) {
  if (value.isTensor()) backend::note_silent_write(value.toTensor());
  if (value.isTensorList())
    for (const at::Tensor& tensor : value.toTensorVector()) backend::note_silent_write(tensor);
}

// Stands where torch's own operators raise versions.
void run_and_note(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const std::vector<c10::Argument>& arguments = op.schema().arguments();
  std::vector<c10::IValue> written;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].alias_info() && arguments[i].alias_info()->isWrite())
      written.push_back(stack->at(stack->size() - arguments.size() + i));
  op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
  for (const c10::IValue& value : written) note(value);
}

// "aten::_fused_adam_" and its like, on lists of tensors.
bool writes_silently(const c10::OperatorName& name) {
  const std::string_view text = name.name;
  return text.starts_with("aten::_fused_") && text.ends_with("_");
}

}  // namespace

void watch_silent_writes() {
  static std::once_flag once;
  std::call_once(once, [] {
    static auto& library = *new torch::Library(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      if (!writes_silently(name)) continue;
      const auto op = c10::Dispatcher::singleton().findSchema(name);
      if (!op || op->hasKernelForDispatchKey(kKey)) continue;
      const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
      library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_and_note>());
    }
  });
}

}  // namespace graphlift::torch_layer
