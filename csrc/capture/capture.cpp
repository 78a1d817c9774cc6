// Owns: admitting objects from outside into a capture: constants by value, tensors as stand-ins, the rest into the
// table.
#include "capture/capture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/once.h"
#include "capture/arrays.h"
#include "capture/containers.h"
#include "capture/type_forms.h"
#include "cpython/imported.h"
#include "guards/constant.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

Capture::Capture(PyCodeObject* root, Dynamic dynamic_sizes, Seen* seen_before)
    : code(root), dynamic(dynamic_sizes), seen(seen_before) {}

Capture::~Capture() {
  SavedError error;
  tracer.reset();
}

bool is_value_constant(PyObject* object) {
  if (object == Py_None || object == Py_Ellipsis || object == Py_NotImplemented || PyBool_Check(object)) return true;
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
      PyBytes_CheckExact(object) || PyComplex_CheckExact(object))
    return true;
  if (!PyTuple_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!is_value_constant(PyTuple_GET_ITEM(object, i))) return false;
  return true;
}

namespace {

PyTypeObject* imported_type(const char* module_name, const char* name) {
  Ref found = cpython::imported(module_name, name);
  if (!found) PyErr_Clear();
  return reinterpret_cast<PyTypeObject*>(found.release());
}

// operator's getters and callers: what they ask for is hidden in them, and never changes.
bool is_getter(PyObject* object) {
  static constinit Once<std::array<PyTypeObject*, 3>> once;
  const auto& types = once.get([] {
    return std::array{imported_type("operator", "itemgetter"), imported_type("operator", "attrgetter"),
                      imported_type("operator", "methodcaller")};
  });
  return std::find(types.begin(), types.end(), Py_TYPE(object)) != types.end();
}

// functools.lru_cache's wrappers: functions, as far as identity goes.
bool is_cached_function(PyObject* object) {
  static constinit Once<PyTypeObject*> once;
  PyTypeObject* type = once.get([] { return imported_type("_functools", "_lru_cache_wrapper"); });
  return Py_IS_TYPE(object, type);
}

bool is_pattern(PyObject* object) {
  static constinit Once<PyTypeObject*> once;
  PyTypeObject* type = once.get([] { return imported_type("re", "Pattern"); });
  return Py_IS_TYPE(object, type);
}

}  // namespace

bool is_identity_constant(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (PyType_Check(object) || PyModule_Check(object) || PyCode_Check(object)) return true;
  if (type == &PyCFunction_Type || type == &PyCMethod_Type) {
    PyObject* self = PyCFunction_GET_SELF(object);
    return !self || PyModule_Check(self) || PyType_Check(self);
  }
  if (type == &PyMethodDescr_Type || type == &PyClassMethodDescr_Type || type == &PyWrapperDescr_Type ||
      type == &PyGetSetDescr_Type || type == &PyMemberDescr_Type || type == &PyProperty_Type ||
      type == &PyStaticMethod_Type || type == &PyClassMethod_Type)
    return true;
  return PyContextVar_CheckExact(object) || is_cached_function(object) || torch_layer::is_singleton(object) ||
         is_array_kind(object);
}

namespace {

// Immutable C objects without identity semantics, compared by their own C-level ==.
class EqualsByCompare final : public guards::LeafCheck {
 public:
  explicit EqualsByCompare(PyObject* value) : value_(Ref::borrow(value)) {}
  bool check(PyObject* object, int64_t*) const override {
    if (Py_TYPE(object) != Py_TYPE(value_.get())) return false;
    const int equal = PyObject_RichCompareBool(object, value_.get(), Py_EQ);
    if (equal < 0) PyErr_Clear();
    return equal == 1;
  }
  std::string text(const std::string& origin) const override {
    return origin + " == " + guards::repr_text(value_.get());
  }
  std::string explain(PyObject* object) const override {
    return "is " + guards::repr_text(object) + ", not " + guards::repr_text(value_.get());
  }

 private:
  Ref value_;
};

bool is_timedelta(PyObject* object) {
  static constinit Once<PyTypeObject*> once;
  PyTypeObject* type = once.get([] { return imported_type("datetime", "timedelta"); });
  return Py_IS_TYPE(object, type);
}

bool is_constant_slice(PyObject* object) {
  if (!PySlice_Check(object)) return false;
  auto* slice = reinterpret_cast<PySliceObject*>(object);
  return is_value_constant(slice->start) && is_value_constant(slice->stop) && is_value_constant(slice->step);
}

bool compares_by_value(PyObject* object) {
  return is_constant_slice(object) || is_timedelta(object) || PyRange_Check(object) || is_pattern(object) ||
         torch_layer::is_device(object);
}

// An origin's words tell objects that are keys of dicts by their type alone: optimizer.state has many such keys.
std::string seen_name(Capture& capture, OriginId origin) {
  std::string name = capture.origins().text(origin, capture.code);
  for (OriginId at = origin; at != guards::kNoOrigin; at = capture.origins().at(at).parent) {
    const guards::Origin& step = capture.origins().at(at);
    if (step.kind == OriginKind::DictItem && !is_value_constant(step.key.get()))
      name += " @" + std::to_string(reinterpret_cast<uintptr_t>(step.key.get()));
  }
  return name;
}

// A number of numpy's that was another one in an earlier capture: a region for each would be one too many.
bool array_number_varies(Capture& capture, PyObject* number, OriginId origin) {
  if (!capture.seen) return false;
  std::vector<int64_t>& values = capture.seen->ints[seen_name(capture, origin) + " of numpy's"];
  const int64_t bits = array_number_bits(number);
  const bool varies = std::any_of(values.begin(), values.end(), [&](int64_t v) { return v != bits; });
  if (values.empty() || (varies && values.size() < 2)) values.push_back(bits);
  return varies && capture.dynamic != Dynamic::Never;
}

}  // namespace

Ref Capture::admit(PyObject* object, OriginId origin) {
  if (torch_layer::is_tensor(object)) return admit_tensor(object, origin);
  if (PyLong_CheckExact(object)) return admit_int(object, origin);
  if (PyFloat_CheckExact(object)) return admit_float(object, origin);
  const bool constant_root = origins().at(origin).kind == OriginKind::Constant;
  if (is_value_constant(object)) {
    if (!constant_root) guards.add(origin, GuardKind::Equals, object);
    return Ref::borrow(object);
  }
  if (is_identity_constant(object) || is_getter(object)) {
    if (!constant_root) guards.add(origin, GuardKind::Is, object);
    return Ref::borrow(object);
  }
  if (PySlice_Check(object) && !is_constant_slice(object))
    return break_here(*this, "unsupported_item", "a slice of objects");
  const bool array_number = is_array_number(object) && !array_number_varies(*this, object, origin);
  if (is_type_form(object) || array_number) {
    guards.add_check(origin, array_number ? array_number_check(object) : type_form_check(object));
    keep_alive.push_back(Ref::borrow(object));
    return Ref::borrow(object);
  }
  if (compares_by_value(object)) {
    guards.add_check(origin, std::make_unique<EqualsByCompare>(object));
    keep_alive.push_back(Ref::borrow(object));
    return Ref::borrow(object);
  }
  if (Outside* known = objects.find(object)) {
    if (known->origin != origin) guards.add(origin, GuardKind::SameAs, nullptr, known->origin);
    return Ref::borrow(object);
  }
  if (!constant_root) guards.add(origin, GuardKind::TypeIs, reinterpret_cast<PyObject*>(Py_TYPE(object)));
  objects.add(object, origin);
  return Ref::borrow(object);
}

Ref Capture::admit_int(PyObject* value, OriginId origin) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (!overflow && seen && origins().at(origin).kind != OriginKind::Constant) {
    auto known = int_symbols.find(origin);
    if (known != int_symbols.end()) return known->second;
    std::vector<int64_t>& values = seen->ints[seen_name(*this, origin)];
    const bool varies = std::any_of(values.begin(), values.end(), [&](int64_t v) { return v != number; });
    if (std::find(values.begin(), values.end(), number) == values.end() && values.size() < 8) values.push_back(number);
    constexpr int64_t kLeast = std::numeric_limits<int64_t>::min() / 4;
    const bool moderate = number < 0 ? number > kLeast : number > 0 && number < -kLeast;
    if (varies && dynamic != Dynamic::Never && moderate) {
      const int64_t lowest = number < 0 ? kLeast : 1;
      ir::Sym symbol = shapes.new_symbol(number, "i" + std::to_string(shapes.symbol_count()), lowest);
      std::vector<ir::SymbolId> ids;
      symbol.collect(&ids);
      guards.bind_symbol(origin, ids.front(), lowest);
      Ref result = tracer->sym_int(symbol);
      int_symbols[origin] = result;
      return result;
    }
  }
  guards.add(origin, GuardKind::Equals, value);
  return Ref::borrow(value);
}

// A float that was another one in an earlier capture becomes an input of the graph; whatever needs to know it then
// guards it after all.
Ref Capture::admit_float(PyObject* value, OriginId origin) {
  if (seen && origins().at(origin).kind != OriginKind::Constant) {
    auto known = float_inputs.find(origin);
    if (known != float_inputs.end()) return known->second;
    const double number = PyFloat_AS_DOUBLE(value);
    std::vector<double>& values = seen->floats[seen_name(*this, origin)];
    const bool varies = std::any_of(values.begin(), values.end(), [&](double v) { return v != number; });
    if (std::find(values.begin(), values.end(), number) == values.end() && values.size() < 8) values.push_back(number);
    if (varies && dynamic != Dynamic::Never && std::isfinite(number)) {
      Ref result = tracer->number_input(value);
      if (!result) return result;
      primal_origins.push_back(origin);
      guards.add(origin, GuardKind::TypeIs, reinterpret_cast<PyObject*>(&PyFloat_Type));
      keep_alive.push_back(Ref::borrow(value));
      float_values[static_cast<int>(primal_origins.size()) - 1] = value;
      return float_inputs[origin] = std::move(result);
    }
  }
  if (origins().at(origin).kind != OriginKind::Constant) guards.add(origin, GuardKind::Equals, value);
  return Ref::borrow(value);
}

bool Capture::tie_generator(PyObject* generator, const std::string& who) {
  if (made_generators.count(generator)) return true;
  const Outside* outside = objects.find(generator);
  const OriginId origin = outside ? outside->origin : guards::kNoOrigin;
  const bool varies =
      origin == guards::kNoOrigin ||
      (seen && seen->generators.try_emplace(seen_name(*this, origin), generator).first->second != generator);
  if (varies) {
    break_here(*this, "generator_argument", who);
    return false;
  }
  guards.add(origin, GuardKind::Is, generator);
  return true;
}

void Capture::fix_float(int primal) {
  guards.add(primal_origins[static_cast<size_t>(primal)], GuardKind::Equals, float_values.at(primal));
}

namespace {

// Dimensions whose size varied between captures, or that the user marked.
std::vector<int> symbolic_dims(Capture& capture, PyObject* tensor, const std::string& text) {
  std::vector<int> dims;
  std::vector<int64_t> sizes;
  if (!torch_layer::sizes_of(tensor, &sizes)) return dims;
  std::vector<std::vector<int64_t>>& seen = capture.seen->sizes[text];
  const torch_layer::Marks marks = torch_layer::dynamic_marks(tensor);
  for (size_t d = 0; d < sizes.size(); ++d) {
    // A size of 1 is what broadcasts: taken to vary only when it was seen to.
    bool varies = capture.dynamic == Dynamic::Always && sizes[d] > 1 && !torch_layer::is_parameter(tensor);
    for (const auto& before : seen) varies |= before.size() == sizes.size() && before[d] != sizes[d];
    varies &= capture.dynamic != Dynamic::Never;
    varies |= marks.is_dynamic(static_cast<int>(d));
    varies &= !marks.is_static(static_cast<int>(d));
    if (varies && sizes[d] > 0) dims.push_back(static_cast<int>(d));
  }
  if (std::find(seen.begin(), seen.end(), sizes) == seen.end() && seen.size() < 8) seen.push_back(sizes);
  return dims;
}

// Neither a local variable, an argument say, nor among the items of one.
bool is_kept_somewhere(const guards::OriginTable& origins, OriginId origin) {
  for (; origin != guards::kNoOrigin; origin = origins.at(origin).parent) {
    switch (origins.at(origin).kind) {
      case OriginKind::Local:
      case OriginKind::Stack:
      case OriginKind::Caller:
      case OriginKind::DictItem:
      case OriginKind::ListItem:
      case OriginKind::TupleItem:
        break;
      case OriginKind::TensorGrad:
      case OriginKind::Custom:  // a tensor that is made in each call
        return false;
      default:
        return true;
    }
  }
  return false;
}

}  // namespace

Ref Capture::admit_tensor(PyObject* tensor, OriginId origin) {
  if (torch_layer::is_stand_in(tensor)) return Ref::borrow(tensor);
  auto known = stand_ins.find(tensor);
  if (known != stand_ins.end()) {
    const OriginId first = primal_origins[static_cast<size_t>(*tracer->primal_of(known->second.get()))];
    if (first != origin) guards.add(origin, GuardKind::SameAs, nullptr, first);
    return known->second;
  }
  std::vector<int> dims;
  if (seen) dims = symbolic_dims(*this, tensor, seen_name(*this, origin));
  Ref stand_in = tracer->stand_in(tensor, dims);
  if (!stand_in) return stand_in;
  const std::optional<int> primal = tracer->primal_of(stand_in.get());
  if (!primal || *primal != static_cast<int>(primal_origins.size()))
    return break_here(*this, "unsupported_tensor", "a tensor that shares its identity with another input");
  primal_origins.push_back(origin);
  if (torch_layer::is_parameter(tensor) || is_kept_somewhere(origins(), origin)) weights.push_back(*primal);
  guards.add_check(origin, tracer->tensor_check(*primal));
  stand_ins[tensor] = stand_in;
  tensor_of_stand_in[stand_in.get()] = tensor;
  keep_alive.push_back(Ref::borrow(tensor));
  return stand_in;
}

void Capture::know(PyObject* object, OriginId origin) {
  const Outside* known = objects.find(object);
  if (!known)
    objects.add(object, origin);
  else if (known->origin != origin && origins().at(origin).kind == OriginKind::Constant)
    guards.add(known->origin, GuardKind::Is, object);
  else if (known->origin != origin)
    guards.add(origin, GuardKind::SameAs, nullptr, known->origin);
}

OriginId Capture::origin_of(PyObject* object) {
  if (Outside* known = objects.find(object)) return known->origin;
  return origins().root(OriginKind::Constant, 0, object);
}

PyObject* Capture::type_lookup(PyTypeObject* type, PyObject* name) {
  PyObject* found = _PyType_Lookup(type, name);
  auto* as_object = reinterpret_cast<PyObject*>(type);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)) return found;
  if (fresh_types.count(as_object) || torch_layer::is_torch_owned(type)) return found;
  const OriginId of_type = origins().root(OriginKind::Constant, 0, as_object);
  const OriginId attribute = origins().child(of_type, OriginKind::TypeAttr, name);
  if (!found)
    guards.add(attribute, GuardKind::Missing);
  else
    guards.add(attribute, is_value_constant(found) ? GuardKind::Equals : GuardKind::Is, found);
  return found;
}

OriginId Capture::root_local(int slot) {
  return caller_root ? origins().root(OriginKind::Caller, *caller_root + 1 + slot)
                     : origins().root(OriginKind::Local, slot);
}

OriginId Capture::root_stack(int slot) {
  return caller_root ? root_local(frames.front().local_count() + slot) : origins().root(OriginKind::Stack, slot);
}

Ref Capture::concrete(PyObject* object) {
  if (!torch_layer::is_sym_scalar(object)) return Ref::borrow(object);
  return torch_layer::specialize(object);
}

ir::SourceLine Capture::where() const {
  if (frames.empty()) return {};
  const cpython::Frame& frame = frames.back();
  const char* file = PyUnicode_AsUTF8(frame.code()->co_filename);
  const char* function = PyUnicode_AsUTF8(frame.code()->co_name);
  return {file ? file : "?", frame.line_of(frame.executing()), function ? function : "?"};
}

std::vector<ir::SourceLine> Capture::user_stack() const {
  std::vector<ir::SourceLine> stack;
  for (const cpython::Frame& frame : frames) {
    const char* file = PyUnicode_AsUTF8(frame.code()->co_filename);
    const char* function = PyUnicode_AsUTF8(frame.code()->co_name);
    stack.push_back({file ? file : "?", frame.line_of(frame.executing()), function ? function : "?"});
  }
  return stack;
}

}  // namespace graphlift::capture
