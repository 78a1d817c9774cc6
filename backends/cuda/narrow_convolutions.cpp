// Owns: see narrow_convolutions.h.
#include "backends/cuda/narrow_convolutions.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ops/layout.h"

namespace graphlift::cuda {
namespace {

using ir::Dims;
using ir::TensorType;
using ir::ValueRef;

constexpr int64_t kMostColumns = 64;                 // elements of a patch
constexpr int64_t kLeastResults = int64_t{1} << 20;  // below, launches are what takes time
constexpr int64_t kAligned = 8;                      // elements: products of rows of 16 bytes are the fastest

const ir::Op& forward_op() {
  static const ir::Op op("aten::convolution.default");
  return op;
}
const ir::Op& backward_op() {
  static const ir::Op op("aten::convolution_backward.default");
  return op;
}

std::vector<int64_t> numbers(const ir::Arg& arg) {
  std::vector<int64_t> found;
  const ir::ArgList* list = arg.list();
  if (!list) return found;
  for (const ir::Arg& it : *list)
    if (it.sym() && it.sym()->is_constant()) found.push_back(it.sym()->constant());
  return found.size() == list->size() ? found : std::vector<int64_t>{};
}

// A convolution, or the gradient of one's weight.
struct Patches {
  ValueRef image, weight;
  TensorType result;  // of the convolution, with its channels last
  std::vector<int64_t> stride, padding, dilation;
  Dims columns;  // elements of a patch down and across, channels; with zeros

  const TensorType& weight_type() const { return ir::type_of(weight); }
  int64_t down() const { return weight_type().sizes[2].constant(); }
  int64_t across() const { return weight_type().sizes[3].constant(); }
};

// With so many zeros that rows are aligned: three channels become four, patches of others wider ones.
Dims aligned_columns(const TensorType& weight) {
  const int64_t given = weight.sizes[1].constant(), down = weight.sizes[2].constant();
  const int64_t channels = given == 3 ? 4 : given;
  int64_t across = weight.sizes[3].constant();
  while (down * across * channels % kAligned != 0) ++across;
  return {down, across, channels};
}

bool is_narrow(const TensorType& type) {
  return (type.dtype == ir::DType::bfloat16 || type.dtype == ir::DType::float16) && type.rank() == 4 &&
         ir::is_constant(type);
}

bool has_channels_last(const TensorType& type) {
  return type.offset.same(0) && ops::same(type.strides, ops::strides_for(type.sizes, ops::Format::ChannelsLast));
}

// `first`: the argument with the stride; padding, dilation, whether it is transposed, its padding and groups follow.
std::optional<Patches> patches(const ir::Node& node, size_t image, size_t weight, const TensorType& result,
                               size_t first) {
  const ValueRef *x = node.args[image].value(), *w = node.args[weight].value();
  const bool* transposed = std::get_if<bool>(&node.args[first + 3]);
  if (!x || !w || !transposed || *transposed || !ir::is_number(node.args[first + 5], 1)) return std::nullopt;
  if (!is_narrow(ir::type_of(*x)) || !is_narrow(ir::type_of(*w)) || !is_narrow(result)) return std::nullopt;
  Patches made{*x,
               *w,
               result,
               numbers(node.args[first]),
               numbers(node.args[first + 1]),
               numbers(node.args[first + 2]),
               aligned_columns(ir::type_of(*w))};
  for (auto* it : {&made.stride, &made.padding, &made.dilation}) {
    if (it->size() == 1) it->push_back(it->front());
    if (it->size() != 2) return std::nullopt;
  }
  const int64_t columns = ops::product(made.columns).constant(), channels = result.sizes[1].constant();
  const bool pays = columns <= std::min(kMostColumns, channels) &&  // rows take no more memory than what they make
                    ops::product(result.sizes).constant() >= kLeastResults;
  return pays && has_channels_last(result) ? std::optional(made) : std::nullopt;
}

TensorType dense(const TensorType& like, Dims sizes) {
  TensorType type = like;
  type.strides = ir::contiguous_strides(sizes);
  type.sizes = std::move(sizes);
  type.offset = 0;
  return type;
}

ir::Arg list_of(const std::vector<int64_t>& numbers) {
  ir::ArgList list;
  for (const int64_t number : numbers) list.emplace_back(ir::Sym(number));
  return ir::Arg(std::move(list));
}

// Calls in front of a node, which they replace.
class Writer {
 public:
  Writer(ir::Graph* graph, ir::Node* node) : graph_(*graph), node_(*node) {}

  ValueRef call(const char* op, ir::ArgList args, TensorType type) {
    ir::Node* made = graph_.insert_call(&node_, ir::Op(op), std::move(args), {std::move(type)});
    made->where = node_.where;
    made->backward = node_.backward;
    made->must_recompute = node_.must_recompute;
    made->checkpoint = node_.checkpoint;
    return {made, 0};
  }

  // Rows of patches: of the image, or, `whole`, of the weight as one patch per result channel.
  ValueRef rows(const Patches& of, bool whole) {
    const ValueRef from = whole ? of.weight : of.image;
    const std::vector<int64_t> ones = {1, 1}, zeros = {0, 0};
    Dims sizes =
        whole ? Dims{of.result.sizes[1], 1, 1} : Dims{of.result.sizes[0], of.result.sizes[2], of.result.sizes[3]};
    const ir::Sym count = ops::product(sizes);
    for (const ir::Sym& size : of.columns) sizes.push_back(size);
    const ValueRef patches = call("graphlift::columns.default",
                                  {ir::Arg(from), list_of({of.down(), of.across()}), list_of(whole ? ones : of.stride),
                                   list_of(whole ? zeros : of.padding), list_of(whole ? ones : of.dilation)},
                                  dense(ir::type_of(from), std::move(sizes)));
    return matrix(patches, count, ops::product(of.columns));
  }

  ValueRef matrix(ValueRef value, const ir::Sym& rows, const ir::Sym& columns) {
    return call("aten::view.default", {ir::Arg(value), ir::Arg(ir::ArgList{ir::Arg(rows), ir::Arg(columns)})},
                dense(ir::type_of(value), {rows, columns}));
  }

  ValueRef turned(ValueRef value) {
    TensorType type = ir::type_of(value);
    std::swap(type.sizes[0], type.sizes[1]);
    std::swap(type.strides[0], type.strides[1]);
    return call("aten::t.default", {ir::Arg(value)}, std::move(type));
  }

  ValueRef permuted(ValueRef value, const std::array<size_t, 4>& order) {
    const TensorType& from = ir::type_of(value);
    TensorType type = from;
    std::vector<int64_t> dims;
    for (size_t i = 0; i < order.size(); ++i) {
      type.sizes[i] = from.sizes[order[i]];
      type.strides[i] = from.strides[order[i]];
      dims.push_back(static_cast<int64_t>(order[i]));
    }
    return call("aten::permute.default", {ir::Arg(value), list_of(dims)}, std::move(type));
  }

  ValueRef shaped(ValueRef value, const Dims& sizes) {
    ir::ArgList list;
    for (const ir::Sym& size : sizes) list.emplace_back(size);
    return call("aten::view.default", {ir::Arg(value), ir::Arg(std::move(list))}, dense(ir::type_of(value), sizes));
  }

  // Only the first `count` along `dim`.
  ValueRef sliced(ValueRef value, size_t dim, const ir::Sym& count) {
    TensorType type = ir::type_of(value);
    if (type.sizes[dim].same(count)) return value;
    type.sizes[dim] = count;
    return call("aten::slice.Tensor",
                {ir::Arg(value), ir::Arg(ir::Sym(static_cast<int64_t>(dim))), ir::Arg(ir::Sym(0)), ir::Arg(count),
                 ir::Arg(ir::Sym(1))},
                std::move(type));
  }

 private:
  ir::Graph& graph_;
  ir::Node& node_;
};

bool replace_forward(ir::Graph* graph, ir::Node* node) {
  const auto found = patches(*node, 0, 1, *node->outputs[0], 3);
  if (!found) return false;
  Writer writer(graph, node);
  const Dims& sizes = found->result.sizes;
  const ValueRef image = writer.rows(*found, false), weight = writer.turned(writer.rows(*found, true));
  const TensorType type = dense(found->result, {ir::type_of(image).sizes[0], sizes[1]});
  const ValueRef product =
      node->args[2].is_none()
          ? writer.call("aten::mm.default", {ir::Arg(image), ir::Arg(weight)}, type)
          : writer.call("aten::addmm.default",
                        {node->args[2], ir::Arg(image), ir::Arg(weight), ir::Arg(ir::Sym(1)), ir::Arg(ir::Sym(1))},
                        type);
  const ValueRef shaped = writer.shaped(product, {sizes[0], sizes[2], sizes[3], sizes[1]});
  graph->replace_uses({node, 0}, writer.permuted(shaped, {0, 3, 1, 2}));
  graph->erase(node);
  return true;
}

// Whether the gradient of the image is left out: a first convolution's image has none.
bool leaves_image_out(const ir::Node& node) {
  const ir::ArgList* mask = node.args[10].list();
  if (!mask || mask->size() != 3 || !node.outputs[1]) return false;
  auto wanted = [&](size_t i) {
    const bool* it = std::get_if<bool>(&(*mask)[i]);
    return it && *it;
  };
  return !wanted(0) && wanted(1);
}

bool replace_backward(ir::Graph* graph, ir::Node* node) {
  if (!leaves_image_out(*node)) return false;
  const ValueRef* gradient = node->args[0].value();
  const auto found = gradient ? patches(*node, 1, 2, ir::type_of(*gradient), 4) : std::nullopt;
  if (!found) return false;
  const TensorType& out = *node->outputs[1];
  const bool last = has_channels_last(out);
  if (!last && !(out.offset.same(0) && ops::same(out.strides, ir::contiguous_strides(out.sizes)))) return false;
  Writer writer(graph, node);
  const ValueRef image = writer.rows(*found, false);
  const ValueRef turned =
      writer.matrix(writer.permuted(*gradient, {0, 2, 3, 1}), ir::type_of(image).sizes[0], found->result.sizes[1]);
  const ir::Sym count = ops::product(found->columns);
  const ValueRef product = writer.call("aten::mm.default", {ir::Arg(writer.turned(turned)), ir::Arg(image)},
                                       dense(out, {out.sizes[0], count}));
  ValueRef shaped = writer.shaped(product, {out.sizes[0], found->columns[0], found->columns[1], found->columns[2]});
  shaped = writer.sliced(writer.sliced(shaped, 2, out.sizes[3]), 3, out.sizes[1]);
  const ValueRef laid = writer.call(
      "aten::clone.default",
      {ir::Arg(writer.permuted(shaped, {0, 3, 1, 2})),
       ir::Arg(ir::MemoryFormat{static_cast<int8_t>(last ? ops::Format::ChannelsLast : ops::Format::Contiguous)})},
      out);
  graph->replace_uses({node, 1}, laid);
  if (node->outputs[2])
    graph->replace_uses(
        {node, 2},
        writer.call("aten::sum.dim_IntList",
                    {ir::Arg(*gradient), list_of({0, 2, 3}), ir::Arg(false), ir::Arg(ir::None())}, *node->outputs[2]));
  graph->erase(node);
  return true;
}

}  // namespace

std::unique_ptr<ir::Graph> with_products_of_patches(const ir::Graph& graph, int8_t device_type) {
  auto is_asked = [&](const ir::Node& node) {
    if (node.kind != ir::NodeKind::Call || (node.op != forward_op() && node.op != backward_op())) return false;
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](const auto& type) { return type && type->device.type == device_type; });
  };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_asked)) return nullptr;
  auto made = graph.clone();
  std::vector<ir::Node*> found;
  for (ir::Node& node : made->nodes())
    if (is_asked(node)) found.push_back(&node);
  bool any = false;
  for (ir::Node* node : found)
    any = (node->op == forward_op() ? replace_forward(made.get(), node) : replace_backward(made.get(), node)) || any;
  return any ? std::move(made) : nullptr;
}

}  // namespace graphlift::cuda
