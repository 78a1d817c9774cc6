// Owns: graphlift_guards: origins, guards and trees for tests and measurements in Python. Not part of the installed
// package. Must not: be needed by the product.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>

#include "guards/guard.h"

namespace py = pybind11;

namespace graphlift::guards {

namespace {

const std::vector<std::pair<const char*, OriginKind>> kOrigins = {
#define KIND(name, text) {#name, OriginKind::name},
    GRAPHLIFT_ORIGINS(KIND)
#undef KIND
};
const std::vector<std::pair<const char*, GuardKind>> kGuards = {
#define GUARD(name, cost, text) {#name, GuardKind::name},
    GRAPHLIFT_GUARDS(GUARD)
#undef GUARD
};

template <typename Kind>
Kind by_name(const std::vector<std::pair<const char*, Kind>>& rows, const std::string& name) {
  for (const auto& [known, kind] : rows)
    if (name == known) return kind;
  throw py::value_error("unknown kind " + name);
}

template <typename Kind>
std::vector<std::string> names_of(const std::vector<std::pair<const char*, Kind>>& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.first);
  return names;
}

PyObject* pointer_of(const py::object& object) { return object.is_none() ? nullptr : object.ptr(); }

// A frame's content, as a tuple of locals and a globals dict.
struct Frame {
  explicit Frame(const py::tuple& locals, const py::object& names) : globals(names) {
    for (py::handle local : locals) slots.push_back(local.ptr());
    roots.locals = roots.stack = slots.data();
    roots.globals = pointer_of(globals);
    roots.builtins = PyEval_GetBuiltins();
  }
  std::vector<PyObject*> slots;
  py::object globals;
  Roots roots;
};

class Tree {
 public:
  Tree(GuardSet guards, std::vector<OriginId> fetches, size_t symbols)
      : tree_(std::move(guards), std::move(fetches), symbols, nullptr),
        fetched_(tree_.fetch_count(), nullptr),
        symbols_(symbols, 0) {}

  py::object check(const py::tuple& locals, const py::object& globals) {
    Frame frame(locals, globals);
    if (!tree_.check(frame.roots, fetched_.data(), symbols_.data())) return py::none();
    py::list fetched;
    for (PyObject*& object : fetched_)
      fetched.append(py::reinterpret_steal<py::object>(std::exchange(object, nullptr)));
    return fetched;
  }

  // Nanoseconds per check that holds, what it fetched let go again: the best of `batches` averages over `times` checks,
  // so that other work on the machine counts little. Negative when it does not hold.
  double time(const py::tuple& locals, const py::object& globals, int times, int batches) {
    Frame frame(locals, globals);
    double best = -1;
    for (int batch = 0; batch < batches; ++batch) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < times; ++i) {
        if (!tree_.check(frame.roots, fetched_.data(), symbols_.data())) return -1;
        for (PyObject*& object : fetched_) Py_DECREF(std::exchange(object, nullptr));
      }
      const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
      if (best < 0 || taken.count() / times < best) best = taken.count() / times;
    }
    return best;
  }

  std::string explain(const py::tuple& locals, const py::object& globals) const {
    return tree_.explain(Frame(locals, globals).roots);
  }
  std::string text() const { return tree_.text(); }
  size_t guard_count() const { return tree_.guard_count(); }

 private:
  GuardTree tree_;
  std::vector<PyObject*> fetched_;
  std::vector<int64_t> symbols_;
};

class Guards {
 public:
  OriginId root(const std::string& kind, int index, const py::object& key) {
    return guards_.origins().root(by_name(kOrigins, kind), index, pointer_of(key));
  }
  OriginId child(OriginId parent, const std::string& kind, const py::object& key, int index) {
    return guards_.origins().child(parent, by_name(kOrigins, kind), pointer_of(key), index);
  }
  void add(OriginId where, const std::string& kind, const py::object& operand, int64_t number) {
    guards_.add(where, by_name(kGuards, kind), operand.ptr(), number);
  }
  void bind_symbol(OriginId where, int symbol, int64_t lowest) { guards_.bind_symbol(where, symbol, lowest); }
  // The guards are used up.
  std::unique_ptr<Tree> tree(std::vector<OriginId> fetches, size_t symbols) {
    return std::make_unique<Tree>(std::exchange(guards_, GuardSet()), std::move(fetches), symbols);
  }

 private:
  GuardSet guards_;
};

}  // namespace

PYBIND11_MODULE(graphlift_guards, module) {
  module.doc() = "Origins, guards and guard trees, for tests and measurements.";
  module.attr("ORIGIN_KINDS") = names_of(kOrigins);
  module.attr("GUARD_KINDS") = names_of(kGuards);
  py::class_<Guards>(module, "Guards", "A set of guards being collected.")
      .def(py::init())
      .def("root", &Guards::root, py::arg("kind"), py::arg("index") = 0, py::arg("key") = py::none())
      .def("child", &Guards::child, py::arg("parent"), py::arg("kind"), py::arg("key") = py::none(),
           py::arg("index") = 0)
      .def("add", &Guards::add, py::arg("where"), py::arg("kind"), py::arg("operand") = py::none(),
           py::arg("number") = 0)
      .def("bind_symbol", &Guards::bind_symbol, py::arg("where"), py::arg("symbol"), py::arg("lowest") = 2)
      .def("tree", &Guards::tree, py::arg("fetches") = std::vector<OriginId>(), py::arg("symbols") = 0);
  py::class_<Tree>(module, "Tree", "The checker of a set of guards.")
      .def("check", &Tree::check, py::arg("locals"), py::arg("globals") = py::none())
      .def("time", &Tree::time, py::arg("locals"), py::arg("globals") = py::none(), py::arg("times") = 100,
           py::arg("batches") = 500)
      .def("explain", &Tree::explain, py::arg("locals"), py::arg("globals") = py::none())
      .def("text", &Tree::text)
      .def("guard_count", &Tree::guard_count);
}

}  // namespace graphlift::guards
