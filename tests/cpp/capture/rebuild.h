// Owns: what tests of recipes and snapshots share: a namespace of Python, a tracer without torch, a capture with
// outside objects, and the round trip snapshot -> run. Must not: need a frame or a tensor.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "capture/capture.h"
#include "capture/recipe.h"
#include "capture/snapshot.h"

namespace graphlift::capture::test {

class Python {
 public:
  Python() : globals_(Ref::steal(PyDict_New())) {
    PyDict_SetItemString(globals(), "__builtins__", PyEval_GetBuiltins());
    run("import torch");  // libtorch_python would import it in the middle of a call, and wait for itself
  }
  void run(const std::string& code) {
    Ref result = Ref::steal(PyRun_String(code.c_str(), Py_file_input, globals(), globals()));
    if (!result) PyErr_Print();
    ASSERT_TRUE(result);
  }
  PyObject* operator[](const char* name) { return PyDict_GetItemString(globals(), name); }  // borrowed
  Ref eval(const std::string& expression) {
    Ref result = Ref::steal(PyRun_String(expression.c_str(), Py_eval_input, globals(), globals()));
    if (!result) PyErr_Print();
    return result;
  }
  bool holds(const std::string& expression) {
    Ref result = eval(expression);
    return result && PyObject_IsTrue(result.get()) == 1;
  }
  void set(const char* name, PyObject* value) { PyDict_SetItemString(globals(), name, value); }
  PyObject* globals() { return globals_.get(); }

 private:
  Ref globals_;
};

class FakeTracer final : public torch_layer::Tracer {
 public:
  Ref stand_in(PyObject*, std::span<const int>) override { return Ref(); }
  std::optional<int> primal_of(PyObject* stand_in) const override {
    auto found = primals.find(stand_in);
    return found == primals.end() ? std::nullopt : std::optional(found->second);
  }
  std::unique_ptr<guards::LeafCheck> tensor_check(int) const override { return nullptr; }
  Ref sym_int(const ir::Sym&) override { return Ref(); }
  std::optional<ir::Sym> sym_of(PyObject* scalar) const override {
    auto found = syms.find(scalar);
    return found == syms.end() ? std::nullopt : std::optional(found->second);
  }
  void start() override {}
  void stop() override {}
  size_t call_count() const override { return 0; }
  Ref frozen(PyObject*) override { return Ref(); }
  void record_calls(torch_layer::ProgramCalls::Stack) override {}
  torch_layer::ProgramCalls* calls() const override { return nullptr; }
  void begin_checkpoint() override {}
  void begin_scouting() override {}
  void end_scouting() override {}
  bool is_scouting() const override { return false; }
  std::vector<PyObject*> sources(std::span<PyObject* const>) override { return {}; }
  void end_checkpoint() override {}
  void begin_inference(bool) override {}
  bool end_inference() override { return false; }
  bool expect(PyObject*, bool, bool) override { return false; }
  void seed(PyObject*, int64_t) override {}
  Ref number_input(PyObject*) override { return Ref(); }
  std::optional<int> number_primal(PyObject*) const override { return std::nullopt; }
  Ref number_of(PyObject*) override { return Ref(); }
  Ref number_tensor(PyObject*) const override { return Ref(); }
  Ref arithmetic(torch_layer::Arithmetic, PyObject*, PyObject*) override { return Ref(); }
  Ref function(torch_layer::NumberFunction, PyObject*) override { return Ref(); }
  bool make_generator(PyObject*) override { return false; }
  Ref generator_state(PyObject*) override { return Ref(); }
  bool set_generator_state(PyObject*, PyObject*) override { return false; }
  std::optional<Decision> decide(int, PyObject*, PyObject*) override { return std::nullopt; }
  Reached reached(std::span<PyObject* const>) override { return {}; }
  bool in_backward() const override { return false; }
  std::unique_ptr<torch_layer::Traced> finish(std::span<PyObject* const>) override { return nullptr; }

  std::map<PyObject*, int> primals;
  std::map<PyObject*, ir::Sym> syms;
};

// A capture whose outside objects are declared by the test.
class Session {
 public:
  Session() : capture(code(), Dynamic::Never, nullptr) {
    auto fake = std::make_unique<FakeTracer>();
    tracer = fake.get();
    capture.tracer = std::move(fake);
  }

  guards::OriginId origin(PyObject* object) {
    const guards::OriginId id = capture.origins().root(guards::OriginKind::Local, static_cast<int>(objects.size()));
    objects[id] = object;
    return id;
  }
  Outside* outside(PyObject* object) { return capture.objects.add(object, origin(object)); }

  // What C code got for the list, dict, set or deque: a copy that the test may change.
  PyObject* shadow(PyObject* object) {
    Outside* of = outside(object);
    Ref copy = Ref::steal(PyObject_CallMethod(object, "copy", nullptr));
    Ref flat;
    if (PyDict_Check(object)) {
      Ref items = Ref::steal(PyObject_CallMethod(object, "items", nullptr));
      Ref pairs = Ref::steal(PySequence_List(items.get()));
      Ref list = Ref::steal(PyList_New(0));
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.get()); ++i)
        for (int j : {0, 1}) PyList_Append(list.get(), PyTuple_GET_ITEM(PyList_GET_ITEM(pairs.get(), i), j));
      flat = Ref::steal(PySequence_Tuple(list.get()));
    } else {
      flat = Ref::steal(PySequence_Tuple(copy.get()));
    }
    PyObject* result = copy.get();
    capture.objects.set_shadow(of, std::move(copy), std::move(flat));
    capture.objects.mutated(of);
    return result;
  }

  void fresh_functions(PyObject* functions) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions); ++i)
      capture.fresh_functions.insert(PyList_GET_ITEM(functions, i));
  }

  bool run(const SnapshotResult& of) {
    std::vector<PyObject*> fetched;
    for (guards::OriginId id : of.fetches) fetched.push_back(objects.at(id));
    return run_recipe(of.recipe, fetched.data(), tensors.data(), symbols.data(), &made);
  }

  // Snapshot and run. The made result; null after a failure.
  Ref rebuild(PyObject* result) {
    ExitState exit;
    exit.result = result;
    taken = snapshot(capture, exit);
    if (!taken.unrebuildable.empty() || !run(taken)) return Ref();
    return made[static_cast<size_t>(taken.recipe.result)];
  }

  Capture capture;
  FakeTracer* tracer;
  SnapshotResult taken;
  std::vector<Ref> made;
  std::vector<PyObject*> tensors;  // outputs that run() is given
  std::vector<int64_t> symbols;
  std::map<guards::OriginId, PyObject*> objects;

 private:
  static PyCodeObject* code() {
    static PyObject* made = Py_CompileString("0", "session", Py_eval_input);
    return reinterpret_cast<PyCodeObject*>(made);
  }
};

inline int count_effects(const Recipe& recipe, EffectKind kind) {
  return static_cast<int>(std::count_if(recipe.effects.begin(), recipe.effects.end(),
                                        [&](const Effect& effect) { return effect.kind == kind; }));
}

inline int count_nodes(const Recipe& recipe, NodeKind kind) {
  return static_cast<int>(std::count_if(recipe.nodes.begin(), recipe.nodes.end(),
                                        [&](const RecipeNode& node) { return node.kind == kind; }));
}

// Defines `shape(root, outside=())`: a text that is equal for object graphs of equal content and identity pattern.
inline const char* const kShapeSource = R"(
import collections, types, itertools, functools
ATOMS = (int, float, str, bytes, bool, complex, type(None), range)
CONSTANTS = (type, types.ModuleType, types.CodeType, types.MethodDescriptorType, types.GetSetDescriptorType)
class Shape:
    def __init__(self, outside):
        self.names = {id(o): i for i, o in enumerate(outside)}
        self.seen, self.lines, self.keep = {}, [], []
    def visit(self, o):
        if type(o) in ATOMS: return repr(o)
        if id(o) in self.names: return f'outside{self.names[id(o)]}'
        if isinstance(o, CONSTANTS): return f'constant {id(o)}'
        if isinstance(o, types.BuiltinFunctionType) and (o.__self__ is None or isinstance(o.__self__, (type, types.ModuleType))):
            return f'constant {o.__name__}'
        if id(o) in self.seen: return f'#{self.seen[id(o)]}'
        n = self.seen[id(o)] = len(self.seen)
        self.keep.append(o)
        self.lines.append(None)
        self.lines[n] = (type(o).__name__, id(type(o)), [self.visit(p) for p in self.parts(o)], self.attributes(o))
        return f'#{n}'
    def parts(self, o):
        if isinstance(o, types.FunctionType):
            return [o.__code__, id(o.__globals__), o.__name__, o.__qualname__, o.__defaults__, o.__kwdefaults__, o.__closure__,
                    o.__annotations__, o.__dict__, o.__doc__, o.__module__]
        if isinstance(o, types.MethodType): return [o.__func__, o.__self__]
        if isinstance(o, types.BuiltinFunctionType): return [o.__name__, o.__self__]
        if isinstance(o, types.CellType):
            try: return [o.cell_contents]
            except ValueError: return []
        if isinstance(o, slice): return [o.start, o.stop, o.step]
        if isinstance(o, BaseException):
            return [*o.args, o.__cause__, o.__context__, o.__suppress_context__, getattr(o, 'name', None)]
        if isinstance(o, collections.OrderedDict): return list(itertools.chain(*collections.OrderedDict.items(o)))
        if isinstance(o, dict): return list(itertools.chain(*dict.items(o))) + [getattr(o, 'default_factory', None)]
        if isinstance(o, tuple): return list(tuple.__iter__(o))
        if isinstance(o, list): return list(list.__iter__(o))
        if isinstance(o, collections.deque): return [o.maxlen, *collections.deque.__iter__(o)]
        if isinstance(o, (set, frozenset)): return sorted(o, key=repr) if all(type(i) in ATOMS for i in o) else [len(o)]
        for base in (str, int, float, bytes, complex):
            if isinstance(o, base): return [base.__repr__(o)]
        in_c = not type(o).__flags__ & 1 << 9 or type(o).__module__ in ('itertools', 'functools')
        return list(o.__reduce__()) if in_c and type(o).__reduce__ is not object.__reduce__ else []
    def attributes(self, o):
        if isinstance(o, types.FunctionType): return []
        found = []
        for k in type(o).__mro__:
            slots = k.__dict__.get('__slots__', ())
            for name in ([slots] if isinstance(slots, str) else slots):
                if name.startswith('__') and not name.endswith('__'): name = f'_{k.__name__}{name}'
                if name not in ('__dict__', '__weakref__') and hasattr(o, name): found += [name, self.visit(getattr(o, name))]
        if any('__dict__' in k.__dict__ for k in type(o).__mro__) and not isinstance(o, functools.partial):
            for k, v in object.__getattribute__(o, '__dict__').items(): found += [self.visit(k), self.visit(v)]
        return found
def shape(root, outside=()):
    s = Shape(outside)
    return s.visit(root), s.lines
)";

}  // namespace graphlift::capture::test
