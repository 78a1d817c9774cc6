// Owns: see recipe.h: running a recipe in its three stages, and its text.
#include "capture/recipe.h"

#include "base/error.h"
#include "capture/recipe_parts.h"

namespace graphlift::capture {
namespace {

constexpr const char* kNodeNames[] = {
#define NODE(kind, text) #kind,
    GRAPHLIFT_RECIPE_NODES(NODE)
#undef NODE
};

constexpr const char* kEffectNames[] = {
#define EFFECT(kind, text) #kind,
    GRAPHLIFT_EFFECTS(EFFECT)
#undef EFFECT
};

std::string words(std::span<const int> nodes) {
  std::string text;
  for (int node : nodes) {
    if (!text.empty()) text += ", ";
    text += node == Recipe::kKeep ? "keep" : node < 0 ? "-" : "%" + std::to_string(node);
  }
  return text;
}

std::string unicode(PyObject* object) {
  const char* text = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "?";
}

// Words for an object that run no Python of the user's.
std::string words(PyObject* object) {
  if (PyType_Check(object)) return reinterpret_cast<PyTypeObject*>(object)->tp_name;
  if (PyCode_Check(object)) return "code " + unicode(reinterpret_cast<PyCodeObject*>(object)->co_name);
  if (PyFunction_Check(object))
    return "function " + unicode(reinterpret_cast<PyFunctionObject*>(object)->func_qualname);
  const bool plain = object == Py_None || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
                     PyBool_Check(object) || PyUnicode_CheckExact(object) || PyCFunction_CheckExact(object);
  if (!plain) return std::string("<") + Py_TYPE(object)->tp_name + ">";
  Ref repr = Ref::steal(PyObject_Repr(object));
  std::string text = unicode(repr.get());
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

std::string words(const RecipeNode& node) {
  std::string text = std::string(kNodeNames[static_cast<size_t>(node.kind)]) + "(" + words(node.children) + ")";
  if (node.kind == NodeKind::Symbol)
    text += " " + node.sym.str();
  else if (node.index >= 0)
    text += " #" + std::to_string(node.index);
  if (node.object) text += " " + words(node.object.get());
  if (!node.state.empty()) text += " state(" + words(node.state) + ")";
  return text;
}

bool is_call(const Effect& effect) { return effect.kind == EffectKind::Call || effect.kind == EffectKind::CallAmbient; }

// `calls`: the states of Call nodes; else everything but those.
bool fill_late(const Recipe& recipe, const RecipeInput& input, bool calls) {
  for (size_t i = 0; i < recipe.nodes.size(); ++i) {
    const RecipeNode& node = recipe.nodes[i];
    if ((node.kind == NodeKind::Call) == calls && !fill_node(node, input.made[i], input)) return false;
  }
  return true;
}

}  // namespace

int Recipe::traverse(visitproc visit, void* arg) const {
  for (const RecipeNode& node : nodes) Py_VISIT(node.object.get());
  return 0;
}

std::string Recipe::text() const {
  std::string text;
  for (size_t i = 0; i < nodes.size(); ++i) text += "%" + std::to_string(i) + " = " + words(nodes[i]) + "\n";
  for (const Effect& effect : effects)
    text += std::string(kEffectNames[static_cast<size_t>(effect.kind)]) + "(" + words(effect.operands) + ")\n";
  if (!locals.empty()) text += "locals: " + words(locals) + "\n";
  if (!stack.empty()) text += "stack: " + words(stack) + "\n";
  for (const FrameRecipe& frame : inner)
    text += "inner frame: locals: " + words(frame.locals) + "; stack: " + words(frame.stack) + "\n";
  if (result >= 0) text += "result: %" + std::to_string(result) + "\n";
  return text;
}

bool run_recipe(const Recipe& recipe, PyObject* const* fetched, PyObject* const* tensors, const int64_t* symbols,
                std::vector<Ref>* made) {
  static_assert(sizeof(Ref) == sizeof(PyObject*), "made is read as an array of pointers");
  const size_t count = recipe.nodes.size();
  made->clear();
  made->resize(count);
  Ref* slots = made->data();
  const RecipeInput input{fetched, tensors, symbols, reinterpret_cast<PyObject* const*>(slots)};
  bool late = false;
  for (size_t i = 0; i < count; ++i) {
    const RecipeNode& node = recipe.nodes[i];
    slots[i] = make_node(node, input);
    if (!slots[i]) return false;
    late |= has_late_parts(node);
  }
  if (late && !fill_late(recipe, input, false)) return false;
  // An iterator checks its position against what it iterates over, so that has its final content by then. Calls come
  // last: they may use iterators.
  size_t next = 0;
  while (next < recipe.effects.size() && !is_call(recipe.effects[next]))
    if (!run_effect(recipe.effects[next++], input)) return false;
  if (late && !fill_late(recipe, input, true)) return false;
  while (next < recipe.effects.size())
    if (!run_effect(recipe.effects[next++], input)) return false;
  return true;
}

std::optional<ReadyResult> ready_result(const Recipe& recipe) {
  if (!recipe.effects.empty() || recipe.acts || recipe.result < 0 || recipe.handled != Recipe::kKeep)
    return std::nullopt;
  const RecipeNode& node = recipe.nodes[static_cast<size_t>(recipe.result)];
  const bool ready = node.kind == NodeKind::Constant || node.kind == NodeKind::Fetched || node.kind == NodeKind::Tensor;
  // An attribute set on a new tensor is a late part.
  if (!ready || !node.state.empty()) return std::nullopt;
  return ReadyResult{node.kind, node.index, node.object.get()};
}

}  // namespace graphlift::capture
