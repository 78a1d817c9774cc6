// Owns: the three stages of running a recipe: nodes are made, late parts are filled, effects are run; and what they
// know of C types. Private to recipe*.cpp and snapshot*.cpp. Must not: call a Python function.
#pragma once

#include "capture/recipe.h"

namespace graphlift::capture {

// What a recipe is run on. All borrowed.
struct RecipeInput {
  PyObject* const* fetched;
  PyObject* const* tensors;
  const int64_t* symbols;
  PyObject* const* made;  // by node

  PyObject* at(int node) const { return node < 0 ? nullptr : made[node]; }
};

Ref make_node(const RecipeNode& node, const RecipeInput& input);
bool has_late_parts(const RecipeNode& node);
bool fill_node(const RecipeNode& node, PyObject* object, const RecipeInput& input);
bool run_effect(const Effect& effect, const RecipeInput& input);

// The class that a Python class statement made (not a type defined in C).
bool is_python_class(PyTypeObject* type);
// The nearest base that is defined in C: it knows how instances are laid out and allocated.
PyTypeObject* c_base(PyTypeObject* type);
PyTypeObject* deque_type();
// Replaces the content from an iterable, by deque's own methods.
bool refill_deque(PyObject* deque, PyObject* items);
bool clear_ordered_dict(PyObject* dict);
// Some C types warn that their __reduce__ and __setstate__ will go away. The program asked for neither, so while this
// lives no warning is seen; what the program set up for its own warnings is not touched.
class QuietWarnings {
 public:
  QuietWarnings();
  ~QuietWarnings();
  QuietWarnings(const QuietWarnings&) = delete;
  QuietWarnings& operator=(const QuietWarnings&) = delete;

 private:
  Ref filters_, entry_;
};
bool warns_of_reduce(PyTypeObject* type);
// By raw storage; OrderedDicts keep their order.
bool put(PyObject* dict, PyObject* key, PyObject* value);

}  // namespace graphlift::capture
