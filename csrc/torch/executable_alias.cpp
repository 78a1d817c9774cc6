// Owns: see executable_alias.h.
#include "torch/executable_alias.h"

#include "torch/convert.h"

namespace graphlift::torch_layer {
namespace {

bool shares(const c10::AliasInfo* result, const c10::AliasInfo* argument) {
  if (!result || !argument) return false;
  for (const c10::AliasInfo& element : result->containedTypes())  // Tensor(a)[]
    if (shares(&element, argument)) return true;
  for (const auto& set : result->beforeSets())
    if (argument->beforeSets().contains(set)) return true;
  return false;
}

// The argument whose memory this output of a call shares; null when it has its own.
const ir::ValueRef* viewed_argument(const ir::ValueRef& value) {
  const ir::Node& node = *value.node;
  if (node.op == ir::Op("aten::_unsafe_view.default"))
    return node.args[0].value();  // its schema hides that it is a view
  if (node.kind == ir::NodeKind::Input || node.op.str().starts_with("graphlift::")) return nullptr;
  const c10::FunctionSchema& schema = find_operator(node.op).schema();
  if (schema.returns().empty()) return nullptr;
  const size_t index = std::min(static_cast<size_t>(value.index), schema.returns().size() - 1);  // a list's elements
  const c10::AliasInfo* result = schema.returns()[index].alias_info();
  if (!result) return nullptr;
  for (size_t i = 0; i < node.args.size(); ++i)
    if (shares(result, schema.arguments()[i].alias_info())) return node.args[i].value();
  return nullptr;
}

}  // namespace

ir::ValueRef memory_owner(ir::ValueRef value) {
  while (const ir::ValueRef* viewed = viewed_argument(value)) value = *viewed;
  return value;
}

}  // namespace graphlift::torch_layer
