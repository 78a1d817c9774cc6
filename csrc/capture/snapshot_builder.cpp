// Owns: deciding what an object at an exit is: a stand-in, from outside, a constant or fresh.
// Must not: know how fresh objects are made (rules do).
#include "capture/snapshot_builder.h"

#include <algorithm>

#include "base/error.h"
#include "capture/c_proxies.h"
#include "capture/computed_arrays.h"
#include "capture/recipe_parts.h"
#include "cpython/imported.h"
#include "torch/gradient_hooks.h"

namespace graphlift::capture {
namespace {

constexpr int kBeingMade = -2;
constexpr int kDepthLimit = 400;  // of early parts in early parts: nested tuples

// Python attributes, and the gradient that a backward of the program's left on it.
bool late_tensor(SnapshotBuilder& builder, PyObject* tensor, int node) {
  if (!add_attributes(builder, tensor, node)) return false;
  PyObject* gradient = builder.keep(torch_layer::gradient_of(tensor));
  if (gradient == Py_None) return true;
  const int value = gradient ? builder.node_of(gradient) : -1;
  if (value >= 0) builder.result.recipe.effects.push_back({EffectKind::SetGrad, {node, value}});
  return value >= 0;
}

const FreshRule* find_rule(PyObject* object) {
  PyTypeObject* base = c_base(Py_TYPE(object));
  for (std::span<const FreshRule> rules : {container_rules(), object_rules(), callable_rules(), reduce_rules()})
    for (const FreshRule& rule : rules)
      if (rule.matches(object, base)) return &rule;
  return nullptr;
}

}  // namespace

SnapshotBuilder::SnapshotBuilder(Capture& of, SnapshotResult* out) : capture(of), result(*out) {
  for (guards::OriginId origin : capture.primal_origins) {
    fetch_index_.try_emplace(origin, static_cast<int>(result.fetches.size()));
    result.fetches.push_back(origin);
  }
}

int SnapshotBuilder::add(RecipeNode node) {
  result.recipe.nodes.push_back(std::move(node));
  return static_cast<int>(result.recipe.nodes.size()) - 1;
}

int SnapshotBuilder::constant(PyObject* object) {
  auto [place, fresh] = nodes_.try_emplace(object, kBeingMade);
  if (fresh) place->second = add({NodeKind::Constant, Ref::borrow(object)});
  return place->second;
}

int SnapshotBuilder::fetched(guards::OriginId origin) {
  const guards::Origin& at = capture.origins().at(origin);
  if (at.kind == guards::OriginKind::Constant) return add({NodeKind::Constant, at.key});
  auto [place, fresh] = fetch_index_.try_emplace(origin, static_cast<int>(result.fetches.size()));
  if (fresh) result.fetches.push_back(origin);
  return add({NodeKind::Fetched, Ref(), place->second});
}

int SnapshotBuilder::fail(PyObject* culprit) {
  PyErr_Clear();
  if (!failed()) {
    result.unrebuildable = Py_TYPE(culprit)->tp_name;
    result.culprit = keep(Ref::borrow(culprit));
  }
  return -1;
}

PyObject* SnapshotBuilder::keep(Ref object) { return result.keep.emplace_back(std::move(object)).get(); }

int SnapshotBuilder::weak_node_of(PyObject* object, PyObject* reference) {
  const bool kept = kept_.contains(object);
  const int node = node_of(object);
  if (!kept) kept_.erase(object);
  weak_.emplace(object, reference);
  return node;
}

int SnapshotBuilder::node_of(PyObject* object) {
  if (failed()) return -1;
  kept_.insert(object);
  if (is_proxy(object)) return fail(object);
  auto found = nodes_.find(object);
  if (found != nodes_.end()) return found->second == kBeingMade ? fail(object) : found->second;
  if (depth_ == kDepthLimit) return fail(object);
  nodes_[object] = kBeingMade;
  ++depth_;
  const int node = make(object);
  --depth_;
  return nodes_[object] = node;
}

bool SnapshotBuilder::nodes_of(std::span<PyObject* const> objects, std::vector<int>* out) {
  out->reserve(out->size() + objects.size());
  for (PyObject* object : objects) {
    const int node = node_of(object);
    if (node < 0) return false;
    out->push_back(node);
  }
  return true;
}

int SnapshotBuilder::make(PyObject* object) {
  Outside* outside = capture.objects.find(object);
  if (!outside) outside = capture.objects.of_shadow(object);
  if (outside) {
    if (outside->origin == guards::kNoOrigin) return fail(object);
    // The shadow and what it stands for are one object.
    const bool is_shadow = outside->object.get() != object;
    return is_shadow ? node_of(outside->object.get()) : fetched(outside->origin);
  }
  if (torch_layer::is_tensor(object)) return make_tensor(object);
  if (torch_layer::is_sym_scalar(object)) return make_symbol(object);
  if (is_value_constant(object)) return add({NodeKind::Constant, Ref::borrow(object)});
  if (PyObject* tensor = computed_array(capture, object)) return make_array(tensor);
  if (capture.fresh_types.count(object) || capture.fresh_types.count(reinterpret_cast<PyObject*>(Py_TYPE(object))))
    return fail(object);
  if (capture.fresh_functions.count(object) && !PyFunction_Check(object)) return fail(object);
  if (is_identity_constant(object) || is_frozen_value(object) || is_enum_member(object))
    return add({NodeKind::Constant, Ref::borrow(object)});
  return make_fresh(object);
}

int SnapshotBuilder::make_tensor(PyObject* tensor) {
  PyObject* stand_in = tensor;
  auto known = capture.stand_ins.find(tensor);
  if (known != capture.stand_ins.end()) stand_in = known->second.get();
  if (std::optional<int> primal = capture.tracer->primal_of(stand_in))
    return fetched(capture.primal_origins[static_cast<size_t>(*primal)]);
  if (!torch_layer::can_be_output(tensor) || torch_layer::gradient_hooks(tensor).any()) return fail(tensor);
  const int node = add({NodeKind::Tensor, Ref(), static_cast<int>(result.tensor_outputs.size())});
  result.tensor_outputs.push_back(tensor);
  static constexpr FreshRule attributes{"tensor", nullptr, nullptr, late_tensor};
  late_.push_back({&attributes, tensor, node});
  return node;
}

// As tensor.numpy() makes it.
int SnapshotBuilder::make_array(PyObject* tensor) {
  RecipeNode node{NodeKind::Call};
  PyObject* method = keep(cpython::imported("torch._C", "TensorBase.numpy"));
  const int of = method ? node_of(tensor) : -1;
  if (of < 0) return fail(tensor);
  node.children = {constant(method), of};
  return add(std::move(node));
}

int SnapshotBuilder::make_symbol(PyObject* scalar) {
  if (std::optional<int> primal = capture.tracer->number_primal(scalar))
    return fetched(capture.primal_origins[static_cast<size_t>(*primal)]);
  if (PyObject* tensor = keep(capture.tracer->number_tensor(scalar))) {
    const int node = add({NodeKind::Number, Ref(), static_cast<int>(result.tensor_outputs.size())});
    result.tensor_outputs.push_back(tensor);
    return node;
  }
  const std::optional<ir::Sym> sym = capture.tracer->sym_of(scalar);
  if (!sym) {  // a float that has to be Python's own
    PyObject* number = keep(torch_layer::is_graph_float(scalar) ? capture.concrete(scalar) : Ref());
    return number ? constant(number) : fail(scalar);
  }
  if (sym->is_constant()) {
    PyObject* number = keep(Ref::steal(PyLong_FromLongLong(sym->constant())));
    return number ? constant(number) : fail(scalar);
  }
  std::vector<ir::SymbolId> ids;
  sym->collect(&ids);
  RecipeNode node{NodeKind::Symbol};
  node.sym = *sym;
  node.index = *std::max_element(ids.begin(), ids.end()) + 1;
  return add(std::move(node));
}

int SnapshotBuilder::make_fresh(PyObject* object) {
  const FreshRule* rule = find_rule(object);
  if (!rule) return fail(object);
  const int node = rule->early(*this, object);
  if (node < 0) return fail(object);
  if (rule->late) late_.push_back({rule, object, node});
  return node;
}

bool SnapshotBuilder::finish() {
  while (!late_.empty() && !failed()) {
    const Late next = late_.front();
    late_.pop_front();
    if (!next.rule->late(*this, next.object, next.node)) fail(next.object);
  }
  for (const auto& [object, reference] : weak_) {
    const RecipeNode& made = at(nodes_.at(object));
    if (!kept_.contains(object) && made.kind != NodeKind::Fetched && made.kind != NodeKind::Constant) fail(reference);
  }
  return !failed();
}

}  // namespace graphlift::capture
