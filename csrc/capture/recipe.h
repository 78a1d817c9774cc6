// Owns: recipes: how a region's exit is rebuilt from fetched objects, graph outputs, symbols and constants, and which
// effects on outside objects are replayed. Plain data after capture; running one executes no Python function of the
// user's. Must not: know frames' layout or capture's state (snapshot.cpp makes recipes from them).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ref.h"
#include "ir/sym.h"

namespace graphlift::capture {

// NODE(kind, "meaning of its parts"). "Late" parts are filled when every node exists, so cycles go through them.
#define GRAPHLIFT_RECIPE_NODES(NODE)                                                                 \
  NODE(Constant, "object")                                                                           \
  NODE(Fetched, "index: of the region's fetches")                                                    \
  NODE(Tensor, "index: of the executable's outputs")                                                 \
  NODE(Number, "index: of the executable's outputs: the Python float in it")                         \
  NODE(Symbol, "sym: an int computed from the bound symbols; index: how many of them it may read")   \
  NODE(Tuple, "children: items; object: the type when it is a subclass")                             \
  NODE(List, "children: items (late); object: the type when it is a subclass")                       \
  NODE(Dict, "children: key, value, ... (late, in order); object: the type when it is a subclass")   \
  NODE(Set, "children: items (late), or with kCopies a set; object: the type when it is a subclass") \
  NODE(FrozenSet, "children: items, or with kCopies a set; object: the type when it is a subclass")  \
  NODE(Deque, "children: maxlen, then items (late); object: the type")                               \
  NODE(Slice, "children: start, stop, step")                                                         \
  NODE(Cell, "children: content or nothing (late)")                                                  \
  NODE(Function, "object: code; children: globals, qualified name, closure or -1")                   \
  NODE(Method, "children: function, self")                                                           \
  NODE(Bound, "children: descriptor of a C type, self: a method of a C type bound to self")          \
  NODE(Instance, "object: class; children: arguments of its C base's allocation")                    \
  NODE(Call, "children: C callable, args...: a reconstruction by __reduce_ex__; state: what __setstate__ gets (late)")

enum class NodeKind : uint8_t {
#define NODE(kind, text) kind,
  GRAPHLIFT_RECIPE_NODES(NODE)
#undef NODE
};

inline constexpr int kCopies = 1;  // index of a set node that copies its one child, order included

struct RecipeNode {
  NodeKind kind;
  Ref object;
  int index = -1;
  ir::Sym sym;
  std::vector<int> children;  // node indices; -1: absent
  // Call: see above. Others: attributes, filled late, as pairs (key, value). A key that is a str: of the instance dict;
  // a C descriptor: set through it; -1: the value becomes the instance dict.
  std::vector<int> state;
};

// EFFECT(kind, "operands are node indices")
#define GRAPHLIFT_EFFECTS(EFFECT)                                                                   \
  EFFECT(SetKey, "dict, key, value: raw storage of a dict (instance dicts and globals too)")        \
  EFFECT(DelKey, "dict, key: nothing happens when it is absent")                                    \
  EFFECT(ReplaceDict, "dict, new content (dict node)")                                              \
  EFFECT(ReplaceOrderedDict, "OrderedDict, new content (OrderedDict or dict node)")                 \
  EFFECT(ReplaceList, "list, new content (list node)")                                              \
  EFFECT(ExtendList, "list, tail (list node)")                                                      \
  EFFECT(ReplaceSet, "set, new content (set node)")                                                 \
  EFFECT(ReplaceDeque, "deque, new content (list node)")                                            \
  EFFECT(SetSlot, "object, member descriptor, value (-1: delete)")                                  \
  EFFECT(SetCell, "cell, value (-1: empty it)")                                                     \
  EFFECT(SetGrad, "tensor, its gradient or None")                                                   \
  EFFECT(CallAmbient, "callable, args...: a setter of torch's ambient state (grad mode, autocast)") \
  EFFECT(Call, "callable, args...: a deferred call of a known C callable (print of text)")

enum class EffectKind : uint8_t {
#define EFFECT(kind, text) kind,
  GRAPHLIFT_EFFECTS(EFFECT)
#undef EFFECT
};

struct Effect {
  EffectKind kind;
  std::vector<int> operands;
};

// A frame at the exit: node per local slot and per stack slot, as in Recipe.
struct FrameRecipe {
  std::vector<int> locals, stack;
};

struct Recipe {
  std::vector<RecipeNode> nodes;  // children come before parents, except through late parts
  std::vector<Effect> effects;    // in replay order
  // The frame at the exit: node per local slot (kKeep: unchanged outside object; kEmpty: unbound) and per stack slot
  // (kEmpty: CPython's NULL).
  std::vector<int> locals, stack;
  std::vector<FrameRecipe> inner;  // of the frames that the exit's instruction enters: no slot is kept
  bool acts = false;               // a node is made by a call that changes something
  int result = -1;                 // Return: node of the returned value
  int handled = kKeep;             // the exception that is being handled (sys.exc_info); kEmpty: none
  static constexpr int kKeep = -2;
  static constexpr int kEmpty = -1;

  int traverse(visitproc visit, void* arg) const;
  std::string text() const;  // one node or effect a line, for logs
};

// Rebuilds every node, then runs the effects. `fetched`, `tensors`: borrowed. `made` gets one reference per node; it
// keeps its capacity, so a caller that lends the same vector again allocates nothing. False: a Python error is set (an
// effect failed, as the program's own statement would have).
bool run_recipe(const Recipe& recipe, PyObject* const* fetched, PyObject* const* tensors, const int64_t* symbols,
                std::vector<Ref>* made);

// The result of a recipe that has no effects and whose result exists already: no node needs to be made for it.
struct ReadyResult {
  NodeKind kind = NodeKind::Constant;  // Constant, Fetched or Tensor
  int index = -1;
  PyObject* object = nullptr;  // Constant: borrowed from the recipe

  PyObject* get(PyObject* const* fetched, PyObject* const* tensors) const {
    return kind == NodeKind::Tensor ? tensors[index] : kind == NodeKind::Fetched ? fetched[index] : object;
  }
};
// Worth asking once per region, not once per call.
std::optional<ReadyResult> ready_result(const Recipe& recipe);

}  // namespace graphlift::capture
