// Owns: see known_sizes.h.
#include "ir/known_sizes.h"

namespace graphlift::ir {
namespace {

void put(Sym* value, const ShapeEnv& shapes) {
  if (!value->is_constant()) *value = shapes.simplify(*value);
}

void put(Arg* arg, const ShapeEnv& shapes) {
  if (auto* value = std::get_if<Sym>(arg)) put(value, shapes);
  if (auto* list = std::get_if<ArgList>(arg))
    for (Arg& item : *list) put(&item, shapes);
}

}  // namespace

void put_known_sizes(TensorType* type, const ShapeEnv& shapes) {
  for (Sym& size : type->sizes) put(&size, shapes);
  for (Sym& stride : type->strides) put(&stride, shapes);
  put(&type->offset, shapes);
}

void put_known_sizes(Graph* graph, const ShapeEnv& shapes) {
  if (shapes.guards().empty()) return;
  for (Node& node : graph->nodes()) {
    for (Arg& arg : node.args) put(&arg, shapes);
    for (auto& type : node.outputs)
      if (type) put_known_sizes(&*type, shapes);
  }
}

}  // namespace graphlift::ir
