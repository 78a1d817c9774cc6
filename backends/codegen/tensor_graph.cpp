// Owns: see tensor_graph.h.
#include "backends/codegen/tensor_graph.h"

#include "base/error.h"
#include "ops/layout.h"

namespace graphlift::codegen {

using ir::Dims;
using ir::DType;
using Kind = TensorNode::Kind;

bool ViewDim::whole() const { return start.same(0) && step.same(1); }

DType computed_as(const TensorNode& node) {
  const auto type = compute_type(node.dtype);
  GL_CHECK(type.has_value(), "a primitive of a type that kernels don't compute with");
  return *type;
}

const TensorNode* memory_of(const TensorNode* node) {
  while (node->is_view()) node = node->args[0];
  return node;
}

Dims broadcast_sizes(const std::vector<Value>& values) {
  Dims sizes;
  for (const Value value : values) {
    Dims other = value->sizes;
    if (other.size() > sizes.size()) std::swap(sizes, other);
    const size_t lead = sizes.size() - other.size();
    for (size_t i = 0; i < other.size(); ++i) {
      ir::Sym& mine = sizes[lead + i];
      if (mine.same(1)) mine = other[i];
      if (!other[i].same(1) && !mine.same(other[i])) throw NotLowered();
    }
  }
  return sizes;
}

Value TensorGraph::make(Kind kind, DType dtype, Dims sizes, std::vector<Value> args) {
  nodes_.push_back({kind, static_cast<int>(nodes_.size()), dtype, std::move(sizes), std::move(args)});
  return &nodes_.back();
}

Value TensorGraph::buffer(ir::ValueRef value, const ir::TensorType& type) {
  Value node = make(Kind::Buffer, type.dtype, type.sizes, {});
  node->value = value;
  return node;
}

Value TensorGraph::number(double value, DType type) {
  Value node = make(Kind::Number, type, {}, {});
  if (ir::is_floating(type))
    node->real = value;
  else
    node->integer = type == DType::bool_ ? static_cast<int64_t>(value != 0) : static_cast<int64_t>(value);
  return node;
}

Value TensorGraph::number(const ir::Sym& value, DType type) {
  if (value.is_constant() && ir::is_floating(type)) return number(static_cast<double>(value.constant()), type);
  if (value.is_constant() && type == DType::bool_) return number(value.constant() != 0 ? 1.0 : 0.0, type);
  Value node = make(Kind::Number, ir::is_floating(type) ? DType::int64 : type, {}, {});
  node->integer = value;
  return cast(node, type);
}

Value TensorGraph::iota(const Dims& sizes, int dim) {
  Value node = make(Kind::Iota, DType::int64, sizes, {});
  node->dim = dim;
  return node;
}

Value TensorGraph::map(Prim prim, std::vector<Value> args) {
  GL_CHECK(static_cast<int>(args.size()) == row(prim).arity, "wrong number of operands");
  const PrimResult result = row(prim).result;
  const DType type = result == PrimResult::Bool     ? DType::bool_
                     : result == PrimResult::Single ? DType::float32
                                                    : computed_as(*args.back());
  for (size_t i = prim == Prim::Select ? 1 : 0; i < args.size(); ++i)
    GL_CHECK(computed_as(*args[i]) == computed_as(*args.back()),
             "operands of two types for " + std::string(row(prim).name));
  Dims sizes = broadcast_sizes(args);
  Value node = make(Kind::Map, type, std::move(sizes), std::move(args));
  node->prim = prim;
  return node;
}

Value TensorGraph::cast(Value value, DType type) {
  if (computed_as(*value) == type) return value;
  if (value->kind == Kind::Number && value->integer.is_constant()) {
    const double real = ir::is_floating(value->dtype) ? value->real : static_cast<double>(value->integer.constant());
    if (ir::is_floating(type)) return number(real, type);
    if (!ir::is_floating(value->dtype)) return number(value->integer, type);
  }
  Value node = make(Kind::Map, type, value->sizes, {value});
  node->prim = Prim::Cast;
  return node;
}

Value TensorGraph::rounded(Value value, DType dtype) {
  if (dtype == DType::bfloat16) return map(Prim::RoundBf16, {cast(value, DType::float32)});
  if (dtype == DType::float16) return map(Prim::RoundF16, {cast(value, DType::float32)});
  return value;
}

Value TensorGraph::reduce(ReduceKind kind, Value value, std::vector<bool> dims) {
  Dims sizes = value->sizes;
  bool any = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!dims[i] || sizes[i].same(1)) {
      dims[i] = false;
      continue;
    }
    sizes[i] = 1;
    any = true;
  }
  if (!any) return map(Prim::Copy, {value});
  Value node = make(Kind::Reduce, computed_as(*value), std::move(sizes), {value});
  node->reduce = kind;
  node->reduced = std::move(dims);
  return node;
}

Value TensorGraph::view(Value value, Dims sizes, std::vector<ViewDim> dims) {
  GL_CHECK(dims.size() == value->sizes.size(), "a view needs an index per dim of its operand");
  Value node = make(Kind::View, value->dtype, std::move(sizes), {value});
  node->view = std::move(dims);
  return node;
}

Value TensorGraph::reshape(Value value, Dims sizes) {
  if (ops::same(value->sizes, sizes)) return value;
  return make(Kind::Reshape, value->dtype, std::move(sizes), {value});
}

Value TensorGraph::alias(Value value, const ir::TensorType& type) {
  return make(Kind::Alias, type.dtype, type.sizes, {value});
}

Value TensorGraph::join(std::vector<Value> values, int dim, Dims sizes) {
  const DType dtype = computed_as(*values.front());
  Value node = make(Kind::Join, dtype, std::move(sizes), std::move(values));
  node->dim = dim;
  return node;
}

Value TensorGraph::gather(std::vector<Value> indices, Value source, Dims sizes, std::vector<int> picks,
                          std::vector<ViewDim> dims) {
  GL_CHECK(picks.size() == source->sizes.size() && dims.size() == picks.size(), "a gather needs an index per dim");
  indices.push_back(source);
  Value node = make(Kind::Gather, computed_as(*source), std::move(sizes), std::move(indices));
  node->picks = std::move(picks);
  node->view = std::move(dims);
  return node;
}

Value TensorGraph::drop_dims(Value value, const std::vector<bool>& dims) {
  Dims sizes;
  std::vector<ViewDim> map;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i]) {
      map.push_back({-1});
      continue;
    }
    map.push_back({static_cast<int>(sizes.size())});
    sizes.push_back(value->sizes[i]);
  }
  return sizes.size() == value->sizes.size() ? value : view(value, std::move(sizes), std::move(map));
}

Value TensorGraph::add_dim(Value value, int dim) {
  Dims sizes = value->sizes;
  sizes.insert(sizes.begin() + dim, 1);
  std::vector<ViewDim> map;
  for (int i = 0; i < value->rank(); ++i) map.push_back({i < dim ? i : i + 1});
  return view(value, std::move(sizes), std::move(map));
}

Value TensorGraph::expand(Value value, const Dims& sizes) {
  if (ops::same(value->sizes, sizes)) return value;
  const int lead = static_cast<int>(sizes.size()) - value->rank();
  std::vector<ViewDim> map;
  for (int i = 0; i < value->rank(); ++i) {
    const bool spread = value->sizes[static_cast<size_t>(i)].same(1) && !sizes[static_cast<size_t>(lead + i)].same(1);
    map.push_back({spread ? -1 : lead + i});
  }
  return view(value, sizes, std::move(map));
}

namespace {

std::string print_sizes(const Dims& sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + sizes[i].str();
  return text + "]";
}

std::string print_operation(const TensorNode& node) {
  static constexpr std::string_view kNames[] = {"buffer", "number",  "iota",  "map",  "reduce",
                                                "view",   "reshape", "alias", "join", "gather"};
  switch (node.kind) {
    case Kind::Map:
      return std::string(row(node.prim).name);
    case Kind::Reduce:
      return std::string(name(node.reduce));
    case Kind::Number:
      return ir::is_floating(node.dtype) ? std::to_string(node.real) : node.integer.str();
    default:
      return std::string(kNames[static_cast<size_t>(node.kind)]);
  }
}

}  // namespace

std::string print(const TensorGraph& graph) {
  std::string text;
  for (const TensorNode& node : graph.nodes()) {
    text += "t" + std::to_string(node.id) + ": " + ir::short_name(node.dtype) + print_sizes(node.sizes) + " = " +
            print_operation(node) + "(";
    for (size_t i = 0; i < node.args.size(); ++i) text += (i ? ", t" : "t") + std::to_string(node.args[i]->id);
    text += ")";
    if (node.value) text += "  # %" + std::to_string(node.value->node->id) + "." + std::to_string(node.value->index);
    text += "\n";
  }
  return text;
}

}  // namespace graphlift::codegen
