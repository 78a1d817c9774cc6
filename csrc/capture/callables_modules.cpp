// Owns: rows and rules for the standard library's C functions.
#include <deque>

#include "capture/attributes.h"
#include "capture/c_calls.h"
#include "capture/callables.h"
#include "capture/calls.h"
#include "capture/checkpoints.h"
#include "capture/control_flow.h"
#include "capture/flex_attention.h"
#include "capture/imports.h"
#include "capture/items.h"
#include "cpython/hook.h"
#include "cpython/imported.h"

namespace graphlift::capture {

namespace {

struct BinaryName {
  const char* name;
  int op;
};

// operator.* go through the same rules as the operators themselves.
constexpr BinaryName kBinary[] = {
    {"add", 0},   {"and_", 1},       {"floordiv", 2}, {"lshift", 3},    {"matmul", 4},   {"mul", 5},   {"mod", 6},
    {"or_", 7},   {"pow", 8},        {"rshift", 9},   {"sub", 10},      {"truediv", 11}, {"xor", 12},  {"iadd", 13},
    {"iand", 14}, {"ifloordiv", 15}, {"ilshift", 16}, {"imatmul", 17},  {"imul", 18},    {"imod", 19}, {"ior", 20},
    {"ipow", 21}, {"irshift", 22},   {"isub", 23},    {"itruediv", 24}, {"ixor", 25}};
constexpr BinaryName kCompare[] = {{"lt", Py_LT}, {"le", Py_LE}, {"eq", Py_EQ},
                                   {"ne", Py_NE}, {"gt", Py_GT}, {"ge", Py_GE}};

int op_of(const CallArgs& call, const BinaryName* table, size_t count) {
  const char* name = reinterpret_cast<PyCFunctionObject*>(call.callable)->m_ml->ml_name;
  for (size_t i = 0; i < count; ++i)
    if (std::string(table[i].name) == name) return table[i].op;
  return -1;
}

Ref rule_binary(Capture& c, const CallArgs& call) {
  const int op = op_of(call, kBinary, std::size(kBinary));
  if (op < 0 || call.nargs != 2 || call.kwnames) return run_prepared(c, call, kPure);
  return binary(c, op, call.args[0], call.args[1]);
}

Ref rule_compare(Capture& c, const CallArgs& call) {
  const int op = op_of(call, kCompare, std::size(kCompare));
  if (op < 0 || call.nargs != 2 || call.kwnames) return run_prepared(c, call, kPure);
  return compare(c, op, call.args[0], call.args[1]);
}

Ref rule_getitem(Capture& c, const CallArgs& call) {
  return call.nargs == 2 ? get_item(c, call.args[0], call.args[1]) : run_prepared(c, call, kPure);
}

Ref rule_setitem(Capture& c, const CallArgs& call) {
  if (call.nargs != 3) return run_prepared(c, call, kPure);
  return set_item(c, call.args[0], call.args[1], call.args[2]) < 0 ? Ref() : Ref::borrow(Py_None);
}

Ref rule_truth(Capture& c, const CallArgs& call) {
  if (call.nargs != 1) return run_prepared(c, call, kPure);
  const bool negate = std::string(reinterpret_cast<PyCFunctionObject*>(call.callable)->m_ml->ml_name) == "not_";
  const int value = truth(c, call.args[0]);
  return value < 0 ? Ref() : Ref::borrow((value != 0) != negate ? Py_True : Py_False);
}

Ref rule_is(Capture& c, const CallArgs& call) {
  if (call.nargs != 2) return run_prepared(c, call, kPure);
  const bool negate = std::string(reinterpret_cast<PyCFunctionObject*>(call.callable)->m_ml->ml_name) == "is_not";
  return Ref::borrow((is_same(c, call.args[0], call.args[1]) != 0) != negate ? Py_True : Py_False);
}

Ref rule_user_break(Capture& c, const CallArgs& call) {
  const char* words = call.nargs == 1 && PyUnicode_Check(call.args[0]) ? PyUnicode_AsUTF8(call.args[0]) : nullptr;
  return break_here(c, "user_requested", words ? ": " + std::string(words) : "");
}

Ref rule_capturing(Capture&, const CallArgs&) { return Ref::borrow(Py_True); }

// A Python function of graphlift's is captured in place of this one.
Ref rule_substitute(Capture& c, const CallArgs& call_args) {
  Ref table = cpython::imported("graphlift.substitutes", "TABLE");
  Ref substitute =
      Ref::borrow(table ? PyDict_GetItemString(table.get(), describe(call_args.callable).c_str()) : nullptr);
  if (!substitute) return PyErr_Occurred() ? Ref() : break_here(c, "unknown_callable", describe(call_args.callable));
  return call(c, substitute.get(), call_args.args, call_args.nargs, call_args.kwnames);
}

bool varies(PyObject* object) {
  if (torch_layer::is_stand_in(object)) {
    const Ref shape = Ref::steal(PyObject_GetAttrString(object, "shape"));
    if (!shape) PyErr_Clear();
    return shape && varies(shape.get());
  }
  if (!PyTuple_Check(object) && !PyList_Check(object)) return torch_layer::is_sym_scalar(object);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (varies(PySequence_Fast_GET_ITEM(object, i))) return true;
  return false;
}

// A function of torch's that asks for sizes as numbers.
Ref rule_where_sizes_vary(Capture& c, const CallArgs& call) {
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  for (Py_ssize_t i = 0; i < total; ++i)
    if (varies(call.args[i])) return rule_substitute(c, call);
  return call_tensor_function(c, call);
}

// Methods of immutable types that answer differently each time, operators that call functions of the program.
Ref rule_never(Capture& c, const CallArgs& call) { return break_here(c, "unknown_callable", describe(call.callable)); }

// weakref.ref() objects from outside are read through the generic rules; fresh ones are C objects.
Ref rule_plain(Capture& c, const CallArgs& call) { return run_prepared(c, call, kShallow | kSymbolic); }

}  // namespace

namespace {

// Paths made here; rows point at them.
std::deque<std::string>& names() {
  static std::deque<std::string> all;
  return all;
}

// Of a float that the graph computes, or an int that varies, the graph computes it.
template <torch_layer::NumberFunction f>
Ref rule_function(Capture& c, const CallArgs& call) {
  if (call.nargs == 1 && !call.kwnames && torch_layer::is_sym_scalar(call.args[0]))
    if (Ref number = c.tracer->function(f, call.args[0]); number || PyErr_Occurred()) return number;
  return run_prepared(c, call, kPure);
}

constexpr CallableRow kNumberFunctions[] = {
    {"math.sqrt", 0, rule_function<torch_layer::NumberFunction::Sqrt>},
    {"math.log", 0, rule_function<torch_layer::NumberFunction::Log>},
    {"math.cos", 0, rule_function<torch_layer::NumberFunction::Cos>},
    {"math.sin", 0, rule_function<torch_layer::NumberFunction::Sin>},
    {"math.tanh", 0, rule_function<torch_layer::NumberFunction::Tanh>},
};

}  // namespace

namespace {

// Sizes that vary are multiplied like any other numbers; C code would ask each for its value.
Ref rule_size_numel(Capture& c, const CallArgs& call) {
  if (call.nargs != 1 || call.kwnames || !PyTuple_Check(call.args[0]))  // Python's error
    return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
  constexpr int kMultiply = 5;  // NB_MULTIPLY
  Ref product = Ref::steal(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(call.args[0]); ++i) {
    const Ref at = Ref::steal(PyLong_FromSsize_t(i));
    const Ref size = at ? get_item(c, call.args[0], at.get()) : Ref();
    product = size ? binary(c, kMultiply, product.get(), size.get()) : Ref();
  }
  return product;
}

}  // namespace

const Family& module_callables() {
  static const Family rows = [] {
    Family all = {
        {"_operator.getitem", 0, rule_getitem},
        {"_operator.setitem", 0, rule_setitem},
        {"_operator.truth", 0, rule_truth},
        {"_operator.not_", 0, rule_truth},
        {"_operator.is_", 0, rule_is},
        {"_operator.is_not", 0, rule_is},
        {"_operator.index", 0, nullptr},
        {"_operator.neg", kSymbolic, nullptr},
        {"_operator.pos", kSymbolic, nullptr},
        {"_operator.abs", kSymbolic, nullptr},
        {"_operator.inv", 0, nullptr},
        {"_operator.invert", 0, nullptr},
        {"_operator.contains", kCompares, nullptr},
        {"_operator.concat", kShallow, nullptr},
        {"_operator.iconcat", kShallow | kMutates, nullptr},
        {"_operator.countOf", kCompares, nullptr},
        {"_operator.indexOf", kCompares, nullptr},
        {"_operator.length_hint", 0, nullptr},
        {"_functools.reduce", kShallow | kCallsFirst, nullptr},
        {"_functools.cmp_to_key", kShallow | kCallsFirst, nullptr},
        {"itertools.tee", kShallow, nullptr},
        {"itertools.chain.from_iterable", kShallow | kLooksInto, nullptr},
        {"_collections._count_elements", kShallow | kMutates | kLooksInto | kHandsOn | kCompares, nullptr},
        {"_bisect.bisect_left", kCompares, nullptr},
        {"_bisect.bisect_right", kCompares, nullptr},
        {"_bisect.insort_left", kShallow | kMutates | kCompares, nullptr},
        {"_bisect.insort_right", kShallow | kMutates | kCompares, nullptr},
        {"_heapq.heappush", kShallow | kMutates | kCompares, nullptr},
        {"_heapq.heappop", kShallow | kMutates | kCompares, nullptr},
        {"_heapq.heapify", kShallow | kMutates | kCompares, nullptr},
        {"_heapq.heapreplace", kShallow | kMutates | kCompares, nullptr},
        {"_heapq.heappushpop", kShallow | kMutates | kCompares, nullptr},
        {"_abc._abc_instancecheck", kShallow | kSymbolic, nullptr},
        {"_abc._abc_subclasscheck", kShallow, nullptr},
        {"_abc._abc_init", kShallow, nullptr},
        {"_abc.get_cache_token", 0, nullptr},
        {"sys.intern", 0, nullptr},
        {"sys.is_finalizing", 0, nullptr},
        {"sys._getframe", 0, nullptr},
        {"_sre.compile", 0, nullptr},
        {"_sre.template", 0, nullptr},
        {"_struct.calcsize", 0, nullptr},
        {"_struct.pack", 0, nullptr},
        {"_struct.unpack", 0, nullptr},
        {"posix.fspath", 0, nullptr},
        {"_weakref.proxy", kShallow, nullptr},
        {"_typing._idfunc", kShallow, nullptr},
        {"builtins.type.mro", 0, nullptr},
        {"builtins.type.__instancecheck__", 0, rule_plain},
        {"builtins.type.__subclasscheck__", 0, rule_plain},
        {"builtins.str.maketrans", 0, nullptr},
        {"builtins.dict.fromkeys", kShallow | kLooksInto | kHandsOn | kCompares, nullptr},
        {"builtins.int.from_bytes", 0, nullptr},
        {"builtins.float.fromhex", 0, nullptr},
        {"builtins.bytes.fromhex", 0, nullptr},
    };
    for (const char* method : {"debug", "info", "warning", "error", "critical", "log"})
      all.push_back({names().emplace_back(std::string("logging.Logger.") + method).c_str(), 0, log_call});
    for (const char* clock : {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today"})
      all.push_back({clock, 0, rule_never});
    all.push_back({"warnings.warn", 0, warn_call});
    all.push_back({"importlib.import_module", 0, rule_import_module});
    all.push_back({"graphlift.control.graph_break", 0, rule_user_break});
    all.push_back({"graphlift.control.is_compiling", 0, rule_capturing});
    all.push_back({"graphlift.substitutes.begin_checkpoint", 0, begin_checkpoint_call});
    all.push_back({"graphlift.substitutes.end_checkpoint", 0, end_checkpoint_call});
    all.push_back({"functools.cached_property.__get__", 0, rule_substitute});
    all.push_back({"torch.utils.checkpoint._checkpoint_without_reentrant_generator", 0, rule_substitute});
    all.push_back({"torch.utils.checkpoint._checkpoint_without_reentrant_generator_impl", 0, rule_substitute});
    all.push_back({"torch.nn.modules.transformer.TransformerEncoder.forward", 0, rule_substitute});
    all.push_back({"torch._C._nn.one_hot", 0, rule_substitute});
    all.push_back({"torch.Size.numel", 0, rule_size_numel});
    all.push_back({"torch.nn.attention.flex_attention.flex_attention", 0, rule_flex_attention});
    all.push_back({"torch.nn.attention.flex_attention.create_mask", 0, rule_flex_attention});
    for (const char* name :
         {"torch.fx.traceback.annotate", "torch._higher_order_ops.scan.scan", "torch._higher_order_ops.map.map"})
      all.push_back({name, 0, rule_substitute});
    all.push_back({"torch.cond", 0, rule_control_flow});
    all.push_back({"torch._higher_order_ops.while_loop.while_loop", 0, rule_control_flow});
    all.push_back({"graphlift.substitutes.sources_of_branches", 0, scout_branches_call});
    all.push_back({"graphlift.substitutes.is_scouted", 0, is_scouted_call});
    for (const char* own : {"cond_of_torch", "while_loop_of_torch", "scan_of_torch", "map_of_torch"})
      all.push_back({names().emplace_back(std::string("graphlift.substitutes.") + own).c_str(), 0, rule_never});
    // What torch.compile runs for them. An associative scan in its generic form is Python code like any other.
    for (const char* name : {"utils._maybe_compile_and_run_fn"})
      all.push_back({names().emplace_back(std::string("torch._higher_order_ops.") + name).c_str(), 0, rule_never});
    for (const char* name :
         {"upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
          "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d",
          "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"})
      all.push_back({names().emplace_back(std::string("torch._C._nn.") + name).c_str(), 0, rule_where_sizes_vary});
    static const char* const kMath[] = {
        "acos",      "acosh", "asin",    "asinh", "atan",    "atan2",     "atanh", "cbrt",  "ceil",    "comb",
        "copysign",  "cosh",  "degrees", "dist",  "erf",     "erfc",      "exp",   "exp2",  "expm1",   "fabs",
        "factorial", "floor", "fmod",    "frexp", "fsum",    "gamma",     "gcd",   "hypot", "isclose", "isfinite",
        "isinf",     "isnan", "isqrt",   "lcm",   "ldexp",   "lgamma",    "log10", "log1p", "log2",    "modf",
        "nextafter", "perm",  "pow",     "prod",  "radians", "remainder", "sinh",  "tan",   "trunc",   "ulp"};
    for (const char* name : kMath)
      all.push_back({names().emplace_back(std::string("math.") + name).c_str(), 0, nullptr});
    for (const CallableRow& row : kNumberFunctions) all.push_back(row);
    for (const BinaryName& row : kBinary)
      all.push_back({names().emplace_back(std::string("_operator.") + row.name).c_str(), 0, rule_binary});
    for (const BinaryName& row : kCompare)
      all.push_back({names().emplace_back(std::string("_operator.") + row.name).c_str(), 0, rule_compare});
    return all;
  }();
  return rows;
}

}  // namespace graphlift::capture
