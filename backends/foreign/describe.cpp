// Owns: see describe.h.
#include "backends/foreign/describe.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

#include <algorithm>

#include "torch/convert.h"
#include "torch/seeding.h"

namespace graphlift::foreign {
namespace {

template <class... Case>
struct Overload : Case... {
  using Case::operator()...;
};
template <class... Case>
Overload(Case...) -> Overload<Case...>;

Ref taken(PyObject* made) {
  if (!made) throw python_error();
  return Ref::steal(made);
}

Ref borrowed(PyObject* object) { return Ref::borrow(object); }

Ref list_of(const ir::ArgList& args);

Ref object_of(const ir::Arg& arg) {
  return std::visit(
      Overload{
          [](ir::None) { return borrowed(Py_None); },
          [](const ir::ValueRef& value) { return taken(Py_BuildValue("(sii)", "value", value.node->id, value.index)); },
          [](const ir::Sym& sym) {
            return taken(sym.is_constant() ? PyLong_FromLongLong(sym.constant())
                                           : Py_BuildValue("(ss)", "symbolic", sym.str().c_str()));
          },
          [](double number) { return taken(PyFloat_FromDouble(number)); },
          [](bool flag) { return borrowed(flag ? Py_True : Py_False); },
          [](const std::complex<double>& number) { return taken(PyComplex_FromDoubles(number.real(), number.imag())); },
          [](const std::string& text) {
            if (torch_layer::names_generator(text)) return taken(THPGenerator_Wrap(torch_layer::named_generator(text)));
            return taken(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
          },
          [](ir::DType dtype) {
            return borrowed(reinterpret_cast<PyObject*>(torch::getTHPDtype(torch_layer::to_torch(dtype))));
          },
          [](const ir::Device& device) { return taken(THPDevice_New(torch_layer::to_torch(device))); },
          [](ir::Layout layout) {
            return borrowed(reinterpret_cast<PyObject*>(torch::getTHPLayout(static_cast<c10::Layout>(layout.number))));
          },
          [](ir::MemoryFormat format) {
            return taken(torch::utils::getTHPMemoryFormat(static_cast<c10::MemoryFormat>(format.number)));
          },
          [](const ir::ArgList& list) { return list_of(list); }},
      static_cast<const std::variant<ir::None, ir::ValueRef, ir::Sym, double, bool, std::complex<double>, std::string,
                                     ir::DType, ir::Device, ir::Layout, ir::MemoryFormat, ir::ArgList>&>(arg));
}

Ref list_of(const ir::ArgList& args) {
  Ref list = taken(PyList_New(static_cast<Py_ssize_t>(args.size())));
  for (size_t i = 0; i < args.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), object_of(args[i]).release());
  return list;
}

Ref describe_node(const ir::Node& node) {
  if (node.kind == ir::NodeKind::Input) return taken(Py_BuildValue("(sis)", "input", node.id, node.input_name.c_str()));
  if (node.op == ir::Op("graphlift::constant"))
    return taken(Py_BuildValue("(siO)", "constant", node.id, object_of(node.args.at(0)).get()));
  const std::string op(node.op.str());
  const ir::SourceLine& at = node.where;
  const bool typed = !node.outputs.empty() && node.outputs[0];
  const Ref dtype = typed ? object_of(node.outputs[0]->dtype) : borrowed(Py_None);
  return taken(Py_BuildValue("(sisOO(sis))", "call", node.id, op.c_str(), list_of(node.args).get(), dtype.get(),
                             at.file.c_str(), at.line, at.function.c_str()));
}

}  // namespace

Ref describe(const ir::Graph& graph) {
  Ref nodes = taken(PyList_New(0));
  for (const ir::Node& node : graph.nodes())
    if (PyList_Append(nodes.get(), describe_node(node).get()) < 0) throw python_error();
  return taken(Py_BuildValue("(OO)", nodes.get(), list_of(graph.outputs()).get()));
}

}  // namespace graphlift::foreign
