// Owns: the module graphlift_ops, through which tests ask shape rules. Must not: be part of the product, or know torch:
// tensors come as plain lists.
#include <pybind11/complex.h>
#include <pybind11/operators.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "ops/shape_rule.h"

namespace py = pybind11;
using namespace graphlift;

namespace {

// Stands for a dtype among arguments; plain strings are strings.
struct DTypeArg {
  ir::DType dtype;
};

ir::DType dtype_named(const std::string& name) {
  auto dtype = ir::dtype_from_name(name);
  if (!dtype) throw py::value_error("no dtype " + name);
  return *dtype;
}

ir::Sym sym_from(py::handle object) {
  if (py::isinstance<ir::Sym>(object)) return object.cast<ir::Sym>();
  return ir::Sym(object.cast<int64_t>());
}

py::object sym_to(const ir::Sym& sym) {
  return sym.is_constant() ? py::object(py::int_(sym.constant())) : py::cast(sym);
}

ir::Dims dims_from(const py::sequence& list) {
  ir::Dims dims;
  for (py::handle item : list) dims.push_back(sym_from(item));
  return dims;
}

py::list dims_to(const ir::Dims& dims) {
  py::list list;
  for (const ir::Sym& dim : dims) list.append(sym_to(dim));
  return list;
}

ops::ShapeArg arg_from(py::handle object) {
  if (object.is_none()) return ir::None{};
  if (py::isinstance<ir::TensorType>(object)) return static_cast<const ir::TensorType*>(object.cast<ir::TensorType*>());
  if (py::isinstance<DTypeArg>(object)) return object.cast<DTypeArg>().dtype;
  if (py::isinstance<ir::Device>(object)) return object.cast<ir::Device>();
  if (py::isinstance<ir::Layout>(object)) return object.cast<ir::Layout>();
  if (py::isinstance<ir::MemoryFormat>(object)) return object.cast<ir::MemoryFormat>();
  if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
  if (py::isinstance<py::float_>(object)) return object.cast<double>();
  if (py::isinstance<py::str>(object)) return object.cast<std::string>();
  if (PyComplex_Check(object.ptr())) return object.cast<std::complex<double>>();
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    std::vector<ops::ShapeArg> list;
    for (py::handle item : object) list.push_back(arg_from(item));
    return list;
  }
  return sym_from(object);
}

// None when there is no rule or the call is outside it; else (results, ints).
py::object infer(ir::ShapeEnv& env, const std::string& name, const py::list& arguments,
                 const std::string& default_dtype) {
  const ops::OpRow* row = ops::find_op(ir::Op(name));
  if (!row) return py::none();
  std::vector<ops::ShapeArg> args;
  for (py::handle item : arguments) args.push_back(arg_from(item));
  std::vector<std::optional<ir::TensorType>> results;
  ops::ShapeCall call{args, env, results};
  call.default_dtype = dtype_named(default_dtype);
  if (!row->shape(call)) return py::none();
  py::list tensors, ints;
  for (const auto& result : results) tensors.append(result ? py::cast(*result) : py::object(py::none()));
  for (const ir::Sym& value : call.int_results) ints.append(sym_to(value));
  return py::make_tuple(tensors, ints);
}

void bind_types(py::module_& m) {
  py::class_<ir::Sym>(m, "Sym")
      .def("__mul__", [](const ir::Sym& a, py::handle b) { return sym_to(a * sym_from(b)); })
      .def("__rmul__", [](const ir::Sym& a, py::handle b) { return sym_to(a * sym_from(b)); })
      .def("__add__", [](const ir::Sym& a, py::handle b) { return sym_to(a + sym_from(b)); })
      .def("__radd__", [](const ir::Sym& a, py::handle b) { return sym_to(a + sym_from(b)); })
      .def("__repr__", &ir::Sym::str);
  py::class_<DTypeArg>(m, "DType").def(py::init([](const std::string& name) { return DTypeArg{dtype_named(name)}; }));
  py::class_<ir::Device>(m, "Device").def(py::init([](const std::string& name) {
    auto device = ir::device_from_name(name);
    if (!device) throw py::value_error("no device " + name);
    return *device;
  }));
  py::class_<ir::Layout>(m, "Layout").def(py::init([](int number) { return ir::Layout{static_cast<int8_t>(number)}; }));
  py::class_<ir::MemoryFormat>(m, "MemoryFormat").def(py::init([](int number) {
    return ir::MemoryFormat{static_cast<int8_t>(number)};
  }));
  py::class_<ir::TensorType>(m, "Tensor")
      .def(py::init([](const std::string& dtype, const ir::Device& device, const py::sequence& sizes,
                       const py::sequence& strides, py::handle offset) {
        return ir::TensorType{dtype_named(dtype), device,           dims_from(sizes),
                              dims_from(strides), sym_from(offset), false};
      }))
      .def_property_readonly("dtype", [](const ir::TensorType& type) { return std::string(ir::name(type.dtype)); })
      .def_property_readonly("device", [](const ir::TensorType& type) { return type.device.str(); })
      .def_property_readonly("sizes", [](const ir::TensorType& type) { return dims_to(type.sizes); })
      .def_property_readonly("strides", [](const ir::TensorType& type) { return dims_to(type.strides); })
      .def_property_readonly("offset", [](const ir::TensorType& type) { return sym_to(type.offset); })
      .def("__repr__", &ir::TensorType::str);
}

}  // namespace

PYBIND11_MODULE(graphlift_ops, m) {
  m.doc() = "Shape rules of graphlift's operators, for tests.";
  bind_types(m);
  py::class_<ir::ShapeEnv>(m, "Env")
      .def(py::init<>())
      .def("symbol", [](ir::ShapeEnv& env,
                        int64_t hint) { return env.new_symbol(hint, "s" + std::to_string(env.symbol_count()), 1); })
      .def("hint", [](const ir::ShapeEnv& env, py::handle value) { return env.hint(sym_from(value)); })
      .def("guards",
           [](const ir::ShapeEnv& env) {
             std::vector<std::string> texts;
             for (const ir::SymGuard& guard : env.guards()) texts.push_back(guard.str());
             return texts;
           })
      .def("hints",
           [](const ir::ShapeEnv& env) { return std::vector<int64_t>(env.hints().begin(), env.hints().end()); })
      .def("at", [](const ir::ShapeEnv&, py::handle value,
                    const std::vector<int64_t>& symbols) { return sym_from(value).eval(symbols); })
      .def(
          "guards_hold",
          [](const ir::ShapeEnv& env, const std::optional<std::vector<int64_t>>& symbols) {
            const std::span<const int64_t> values = symbols ? std::span<const int64_t>(*symbols) : env.hints();
            for (const ir::SymGuard& guard : env.guards())
              if (!guard.holds(values)) return false;
            return true;
          },
          py::arg("symbols") = py::none());
  m.def("infer", &infer, py::arg("env"), py::arg("name"), py::arg("args"), py::arg("default_dtype") = "float32");
  m.def("names", [] {
    std::vector<std::string> names;
    for (const ops::OpRow* row : ops::all_ops()) names.emplace_back(row->name);
    return names;
  });
}
