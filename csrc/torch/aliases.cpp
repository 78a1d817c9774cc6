// Owns: mutation and views as pure calls. A write to a view is carried to its base by the inverse of the view
// operation; other views of the same memory are made again when they are read next (Recorder::refresh). Must not:
// decide what a written input means for the caller (finish.cpp).
#include <ATen/core/Formatting.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.h"
#include "ops/layout.h"
#include "torch/convert.h"
#include "torch/recorder.h"
#include "torch/sym_node.h"

namespace graphlift::torch_layer {

using c10::IValue;

namespace {

ir::Sym at_dim(const ir::TensorType& type, int64_t dim) {
  return type.sizes[static_cast<size_t>(dim < 0 ? dim + type.rank() : dim)];
}

std::string text(const ir::Dims& dims) {
  std::string result = "[";
  for (size_t i = 0; i < dims.size(); ++i) result += (i ? ", " : "") + dims[i].str();
  return result + "]";
}

ir::ArgList dims_arg(const ir::Dims& dims) { return ir::ArgList(dims.begin(), dims.end()); }

bool same_dims(const ir::Dims& a, const ir::Dims& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const ir::Sym& x, const ir::Sym& y) { return x.same(y); });
}

void check_no_overlap(ir::ShapeEnv& env, const ir::TensorType& type) {
  for (size_t d = 0; d < type.sizes.size(); ++d)
    TORCH_CHECK(!ops::equal(env, type.strides[d], 0) || ops::at_most(env, type.sizes[d], 1),
                "unsupported operation: more than one element of the written-to tensor refers to a single memory "
                "location. Please clone() the tensor before performing the operation.");
}

// The places in its storage, [first, behind the last), that a tensor without gaps fills; nothing for others.
std::optional<std::pair<ir::Sym, ir::Sym>> filled_span(ir::ShapeEnv& env, const ir::TensorType& type) {
  ir::Sym count = 1, reach = 1;
  for (size_t d = 0; d < type.sizes.size(); ++d) {
    count = count * type.sizes[d];
    reach = reach + (type.sizes[d] - ir::Sym(1)) * type.strides[d];
  }
  if (ops::at_most(env, count, 0) || !ops::equal(env, reach, count)) return std::nullopt;
  return std::pair(type.offset, type.offset + count);
}

// Where eager refuses a write, or where its result depends on the order of elements: an operand that shares a part of
// the memory that is written.
bool overlaps_in_part(ir::ShapeEnv& env, const ir::TensorType& target, const ir::TensorType& operand) {
  if (target.offset.same(operand.offset) && ops::same(target.sizes, operand.sizes) &&
      ops::same(target.strides, operand.strides))
    return false;
  const auto a = filled_span(env, target), b = filled_span(env, operand);
  if (!a || !b || ops::at_most(env, b->second, a->first) || ops::at_most(env, a->second, b->first)) return false;
  const bool alike = ops::equal(env, a->first, b->first) && ops::equal(env, a->second, b->second);
  return !alike || !ops::equal(env, target.strides, operand.strides);
}

// --- inverses of view operations -------------------------------------------------------------------------------------

// What the parent becomes when its view becomes `value`.
struct Inverse {
  Recorder& recorder;
  const Slot& slot;
  ir::ValueRef parent;
  ir::ValueRef value;

  const ir::TensorType& parent_type() const { return slot.parent->type; }
  const ir::Arg& arg(size_t i) const { return slot.step.args[i]; }
  int64_t integer(size_t i) const { return recorder.shapes().specialize(*arg(i).sym()); }

  // The parent with a part replaced; arguments of the view operation follow.
  ir::ValueRef scatter(std::string_view op, size_t arguments) const {
    ir::ArgList args{parent, value};
    for (size_t i = 1; i < arguments; ++i) args.push_back(arg(i));
    return recorder.add_simple(op, std::move(args), parent_type());
  }
  ir::ValueRef permuted(std::vector<int64_t> order) const {
    const ir::TensorType& from = recorder.graph().type(value);
    ir::TensorType type = from;
    ir::ArgList list;
    for (size_t d = 0; d < order.size(); ++d) {
      type.sizes[d] = from.sizes[static_cast<size_t>(order[d])];
      type.strides[d] = from.strides[static_cast<size_t>(order[d])];
      list.emplace_back(ir::Sym(order[d]));
    }
    return recorder.add_simple("aten::permute.default", {value, std::move(list)}, std::move(type));
  }
};

using InverseRule = ir::ValueRef (*)(const Inverse&);

ir::ValueRef invert_reshape(const Inverse& in) {
  ir::TensorType packed = in.recorder.graph().type(in.value);
  ir::ValueRef value = in.value;
  ir::Dims contiguous = ir::contiguous_strides(packed.sizes);
  packed.offset = 0;
  if (!same_dims(packed.strides, contiguous)) {
    packed.strides = contiguous;
    value = in.recorder.add_simple("aten::clone.default", {value, ir::MemoryFormat{0}}, packed);
  }
  packed.sizes = in.parent_type().sizes;
  packed.strides = ir::contiguous_strides(packed.sizes);
  return in.recorder.add_simple("aten::view.default", {value, dims_arg(packed.sizes)}, packed);
}

ir::ValueRef invert_transpose(const Inverse& in) {
  int64_t rank = in.parent_type().rank();
  std::vector<int64_t> order(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank; ++d) order[static_cast<size_t>(d)] = d;
  if (rank < 2) return in.value;
  bool plain = in.slot.step.args.size() < 3;  // t()
  int64_t a = plain ? 0 : in.integer(1), b = plain ? 1 : in.integer(2);
  std::swap(order[static_cast<size_t>(a < 0 ? a + rank : a)], order[static_cast<size_t>(b < 0 ? b + rank : b)]);
  return in.permuted(std::move(order));
}

ir::ValueRef invert_permute(const Inverse& in) {
  const ir::ArgList& dims = *in.arg(1).list();
  std::vector<int64_t> order(dims.size());
  auto rank = static_cast<int64_t>(dims.size());
  for (int64_t d = 0; d < rank; ++d) {
    int64_t from = in.recorder.shapes().specialize(*dims[static_cast<size_t>(d)].sym());
    order[static_cast<size_t>(from < 0 ? from + rank : from)] = d;
  }
  return in.permuted(std::move(order));
}

ir::ValueRef invert_slice(const Inverse& in) { return in.scatter("aten::slice_scatter.default", 5); }
ir::ValueRef invert_select(const Inverse& in) { return in.scatter("aten::select_scatter.default", 3); }
ir::ValueRef invert_diagonal(const Inverse& in) { return in.scatter("aten::diagonal_scatter.default", 4); }
ir::ValueRef invert_as_strided(const Inverse& in) { return in.scatter("aten::as_strided_scatter.default", 4); }
ir::ValueRef invert_view_as_real(const Inverse& in) {
  return in.recorder.add_simple("aten::view_as_complex.default", {in.value}, in.parent_type());
}
ir::ValueRef invert_view_as_complex(const Inverse& in) {
  return in.recorder.add_simple("aten::view_as_real.default", {in.value}, in.parent_type());
}
ir::ValueRef invert_view_dtype(const Inverse& in) {
  return in.recorder.add_simple("aten::view.dtype", {in.value, in.parent_type().dtype}, in.parent_type());
}

struct InverseRow {
  std::string_view op;
  InverseRule rule;
};
constexpr InverseRow kInverses[] = {
    {"aten::view.default", invert_reshape},
    {"aten::_reshape_alias.default", invert_reshape},
    {"aten::squeeze.default", invert_reshape},
    {"aten::squeeze.dim", invert_reshape},
    {"aten::squeeze.dims", invert_reshape},
    {"aten::unsqueeze.default", invert_reshape},
    {"aten::expand.default", invert_reshape},
    {"aten::t.default", invert_transpose},
    {"aten::transpose.int", invert_transpose},
    {"aten::permute.default", invert_permute},
    {"aten::slice.Tensor", invert_slice},
    {"aten::select.int", invert_select},
    {"aten::diagonal.default", invert_diagonal},
    {"aten::as_strided.default", invert_as_strided},
    {"aten::view_as_real.default", invert_view_as_real},
    {"aten::view_as_complex.default", invert_view_as_complex},
    {"aten::view.dtype", invert_view_dtype},
};

// --- views with several results --------------------------------------------------------------------------------------

ir::ArgList slice_args(int64_t dim, const ir::Sym& start, const ir::Sym& length) {
  return {ir::None{}, ir::Sym(dim), start, start + length, ir::Sym(1)};
}

// Steps that make each result of a multi-result view operation alone.
std::vector<ViewStep> split_steps(Recorder& recorder, std::string_view op, const ir::ArgList& args,
                                  const Types& types) {
  std::vector<ViewStep> steps;
  bool unbind = op == "aten::unbind.int";
  int64_t dim = recorder.shapes().specialize(*args[unbind ? 1 : 2].sym());
  ir::Sym start = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    if (unbind) {
      steps.push_back({ir::Op("aten::select.int"), {ir::None{}, ir::Sym(dim), ir::Sym(static_cast<int64_t>(i))}});
      continue;
    }
    ir::Sym length = at_dim(*types[i], dim);
    steps.push_back({ir::Op("aten::slice.Tensor"), slice_args(dim, start, length)});
    start = start + length;
  }
  return steps;
}

constexpr std::string_view kSplits[] = {"aten::split.Tensor", "aten::split_with_sizes.default", "aten::unbind.int"};

}  // namespace

ir::ValueRef Recorder::scatter(const Slot& slot, ir::ValueRef parent, ir::ValueRef value) {
  for (const InverseRow& row : kInverses)
    if (row.op == slot.step.op.str()) return row.rule({*this, slot, parent, value});
  break_now("unsupported_tensor", "a view by " + std::string(slot.step.op.str()) + " that is written to");
}

// Brings a computed value to the dtype, shape and (where it has no gaps) strides of the tensor that it is written to.
ir::ValueRef Recorder::fit(const ir::TensorType& target, ir::ValueRef old, ir::ValueRef value) {
  const ir::TensorType& type = graph_->type(value);
  auto cast_from = to_torch(type.dtype), cast_to = to_torch(target.dtype);
  TORCH_CHECK(c10::canCast(cast_from, cast_to), "result type ", cast_from, " can't be cast to the desired output type ",
              cast_to);
  bool same_sizes = type.rank() == target.rank();
  for (int d = 0; same_sizes && d < type.rank(); ++d)
    same_sizes = shapes_->guard(ir::Relation::Eq, type.sizes[d], target.sizes[d]);
  TORCH_CHECK(same_sizes, "output with shape ", text(target.sizes), " doesn't match the broadcast shape ",
              text(type.sizes));
  bool same_layout = same_dims(type.strides, target.strides) || !ops::is_dense(*shapes_, target);
  if (type.dtype == target.dtype && type.device == target.device && same_layout) return value;
  ir::TensorType result = target;
  result.requires_grad = false;
  return add_simple("aten::copy.default", {old, value, false}, std::move(result));
}

namespace {

// A tangent is the backward's own.
bool is_of_forward(const FakeStorage& storage) {
  const ir::Node& maker = *storage.base->value.node;
  return storage.primal >= 0 || (maker.kind != ir::NodeKind::Input && !maker.backward);
}

}  // namespace

void Recorder::refuse_scouted_write(const at::Tensor& tensor) {
  if (!is_scouting()) return;
  const FakeStorage* storage = fake_storage(tensor);
  if (!storage || storage->primal >= 0 || storage->born <= scouted_.front())
    break_now("branches", "writes to a tensor from before");
}

void Recorder::write(const at::Tensor& tensor, ir::ValueRef value) {
  auto slot = slot_of(tensor);
  refuse_scouted_write(tensor);
  FakeStorage& storage = *fake_storage(tensor);
  if (!checkpoints_.empty() && !backward_ && storage.primal >= 0 && at::GradMode::is_enabled())
    break_now("unsupported_tensor", "one from outside that a checkpoint's function writes to: backward does it again");
  if (backward_ && is_of_forward(storage))
    break_now("unsupported_tensor", "one from before the backward, which the backward writes to");
  Slot* at = slot.get();
  while (at->parent) {
    refresh(*at->parent, storage);
    value = scatter(*at, at->parent->value, value);
    at = at->parent.get();
  }
  at->value = fit(at->type, at->value, value);
  at->generation = ++storage.generation;
}

void Recorder::view(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack) {
  const auto& schema = handle.schema();
  auto arguments = torch::jit::last(stack, schema.arguments().size());
  if (!arguments[0].isTensor()) return pure(handle, info, stack);
  at::Tensor self = arguments[0].toTensor();
  if (!fake_storage(self)) {
    (void)tensor_argument(self);  // breaks unless it is a number
    self = lift_number(self);
    stack[stack.size() - schema.arguments().size()] = self;
    arguments = torch::jit::last(stack, schema.arguments().size());
  }
  auto parent = slot_of(self);
  static const ir::Op as_strided("aten::as_strided.default");
  if (info.op == as_strided && fake_storage(self)->primal >= 0) seen_by_offset_.insert(fake_storage(self)->primal);
  ir::Node* node = record(handle, info, arguments);
  bool split = std::find(std::begin(kSplits), std::end(kSplits), info.op.str()) != std::end(kSplits);
  std::vector<ViewStep> steps;
  if (split) steps = split_steps(*this, info.op.str(), node->args, node->outputs);
  torch::jit::drop(stack, schema.arguments().size());
  c10::List<at::Tensor> list;
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    auto slot = std::make_shared<Slot>();
    slot->type = *node->outputs[i];
    slot->value = {node, static_cast<int>(i)};
    slot->generation = fake_storage(self)->generation;
    slot->parent = parent;
    slot->step = split ? std::move(steps[i]) : ViewStep{info.op, node->args};
    list.push_back(make_fake_view(*shapes_, self, std::move(slot)));
  }
  if (schema.returns()[0].type()->kind() == c10::TypeKind::ListType)
    stack.emplace_back(std::move(list));
  else
    stack.emplace_back(list.get(0));
}

namespace {

void add_tensors(const IValue& argument, std::vector<at::Tensor>* result) {
  if (argument.isTensorList()) {
    for (at::Tensor item : argument.toTensorList()) result->push_back(item);
  } else if (argument.isTensor() && argument.toTensor().defined()) {
    result->push_back(argument.toTensor());
  }
}

std::vector<at::Tensor> written_tensors(const OpInfo& info, c10::ArrayRef<IValue> arguments) {
  std::vector<at::Tensor> result;
  for (size_t i : info.written) add_tensors(arguments[i], &result);
  return result;
}

// What a library's kernel reads of the memory that it writes depends on the order in which it does so.
bool shares_memory(const std::vector<at::Tensor>& targets, c10::ArrayRef<IValue> arguments) {
  std::vector<at::Tensor> tensors;
  for (const IValue& value : arguments) {
    if (value.isOptionalTensorList()) return true;  // not taken apart here
    add_tensors(value, &tensors);
  }
  return std::any_of(targets.begin(), targets.end(), [&](const at::Tensor& target) {
    const auto same = [&](const at::Tensor& other) { return fake_storage(other) == fake_storage(target); };
    return std::count_if(tensors.begin(), tensors.end(), same) > 1;
  });
}

// Results of the operator that are the written arguments themselves, and stand-ins for the others.
void push_mutating_results(Recorder& recorder, const c10::FunctionSchema& schema, const OpInfo& info, ir::Node* node,
                           torch::jit::Stack& stack) {
  auto last = torch::jit::last(stack, schema.arguments().size());
  std::vector<IValue> arguments(last.begin(), last.end());
  torch::jit::drop(stack, schema.arguments().size());
  int own = 0;
  size_t written = 0;
  for (const c10::Argument& result : schema.returns()) {
    if (result.alias_info()) {
      stack.push_back(arguments[info.written[written++]]);
    } else {
      const auto& type = node->outputs[static_cast<size_t>(own)];
      stack.emplace_back(type ? recorder.new_tensor(*type, {node, own}) : at::Tensor());
      ++own;
    }
  }
}

// Random operators fill memory in its own order: the dimensions of a dense, permuted target from outer to inner;
// nothing when they are in that order already.
std::vector<int64_t> memory_order(ir::ShapeEnv& shapes, const ir::TensorType& type) {
  std::vector<int64_t> order(static_cast<size_t>(type.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return ops::less(shapes, type.strides[static_cast<size_t>(b)], type.strides[static_cast<size_t>(a)]);
  });
  return std::is_sorted(order.begin(), order.end()) ? std::vector<int64_t>() : order;
}

ir::ArgList order_arg(const std::vector<int64_t>& order) {
  ir::ArgList list;
  for (int64_t d : order) list.emplace_back(ir::Sym(d));
  return list;
}

ir::TensorType permuted(const ir::TensorType& type, const std::vector<int64_t>& order) {
  ir::TensorType result = type;
  for (size_t i = 0; i < order.size(); ++i) {
    result.sizes[i] = type.sizes[static_cast<size_t>(order[i])];
    result.strides[i] = type.strides[static_cast<size_t>(order[i])];
  }
  return result;
}

}  // namespace

// The draw of `functional` on the target as memory has it, and back.
ir::ValueRef Recorder::draw_in_memory_order(const c10::OperatorHandle& functional, torch::jit::Stack& arguments,
                                            const std::vector<int64_t>& order) {
  at::Tensor target = arguments[0].toTensor();
  const ir::TensorType type = slot_of(target)->type;
  const ir::TensorType packed = permuted(type, order);
  arguments[0] = new_tensor(packed, add_simple("aten::permute.default", {value_of(target), order_arg(order)}, packed));
  ir::Node* node = record(functional, op_info(functional), arguments);
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  ir::TensorType unpacked = permuted(*node->outputs[0], back);
  return add_simple("aten::permute.default", {ir::ValueRef{node, 0}, order_arg(back)}, std::move(unpacked));
}

// t_() and the like: the tensor becomes a view of what it was.
void Recorder::change_view(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack) {
  auto arguments = torch::jit::last(stack, handle.schema().arguments().size());
  at::Tensor self = arguments[0].toTensor();
  FakeImpl* impl = fake_impl(self);
  if (!impl) break_now("unsupported_tensor", "one whose sizes " + handle.schema().name() + " changes");
  refuse_scouted_write(self);
  torch::jit::Stack pure_arguments;
  for (size_t i : info.functional_arguments) pure_arguments.push_back(arguments[i]);
  view(*info.functional, op_info(*info.functional), pure_arguments);
  impl->set_slot(fake_impl(pure_arguments.back().toTensor())->slot());
  torch::jit::drop(stack, handle.schema().arguments().size());
  stack.emplace_back(std::move(self));
}

// Where a result goes that has no elements yet, it is laid out as the result is.
bool Recorder::grows(const at::Tensor& target, ir::ValueRef value, bool structured) {
  FakeImpl* impl = fake_impl(target);
  ir::TensorType type = graph_->type(value);
  const bool empty = impl && impl->slot()->type.numel().same(ir::Sym(0)) && !type.numel().same(ir::Sym(0));
  const bool own = empty && impl->slot() == fake_storage(target)->base && fake_storage(target)->primal < 0 &&
                   !impl->given_data() && target.storage().use_count() == 1 && !target.requires_grad();
  const bool fits = own && type.dtype == impl->slot()->type.dtype && type.device == impl->slot()->type.device &&
                    (structured || same_dims(type.strides, ir::contiguous_strides(type.sizes)));
  if (fits) impl->become(*fake_impl(new_tensor(type, value)));
  return fits;
}

void Recorder::mutate(const c10::OperatorHandle& handle, const OpInfo& info, torch::jit::Stack& stack) {
  const auto& schema = handle.schema();
  auto arguments = torch::jit::last(stack, schema.arguments().size());
  if (!info.functional) break_now("unsupported_tensor", "one that " + schema.name() + " writes to");
  if (info.changes_view) return change_view(handle, info, stack);
  std::vector<at::Tensor> targets = written_tensors(info, arguments);
  for (const at::Tensor& target : targets) {
    if (!fake_storage(target)) break_now("unsupported_tensor", "one from outside that " + schema.name() + " writes to");
    check_no_overlap(*shapes_, slot_of(target)->type);
    for (const IValue& value : arguments) {
      const bool shares = value.isTensor() && fake_storage(value.toTensor()) == fake_storage(target);
      if (shares && overlaps_in_part(*shapes_, slot_of(target)->type, slot_of(value.toTensor())->type))
        break_now("unsupported_tensor", "one that shares a part of the memory that " + schema.name() + " writes to");
    }
  }
  if (!info.of_torch && shares_memory(targets, arguments))
    break_now("unsupported_tensor", "one that shares the memory that " + schema.name() + " writes to");
  torch::jit::Stack pure_arguments;
  for (size_t i : info.functional_arguments) pure_arguments.push_back(arguments[i]);
  const std::vector<int64_t> order =
      info.random && targets.size() == 1 ? memory_order(*shapes_, slot_of(targets[0])->type) : std::vector<int64_t>();
  if (!order.empty() && pure_arguments[0].isTensor() && pure_arguments[0].toTensor().is_same(targets[0])) {
    ir::ValueRef value = draw_in_memory_order(*info.functional, pure_arguments, order);
    auto slot = slot_of(targets[0]);
    refresh(*slot, *fake_storage(targets[0]));
    write(targets[0], slot->parent ? fit(slot->type, slot->value, value) : value);
    return push_mutating_results(*this, schema, info, value.node, stack);
  }
  ir::Node* node = record(*info.functional, op_info(*info.functional), pure_arguments);
  GL_CHECK(node->outputs.size() >= targets.size(), "too few results of " + std::string(node->op.str()));
  size_t own = node->outputs.size() - targets.size();
  for (size_t i = 0; i < targets.size(); ++i) {
    ir::ValueRef value{node, static_cast<int>(own + i)};
    if (info.writes_results_alone && grows(targets[i], value, op_info(*info.functional).structured)) continue;
    // A view's own dtype rules before the write is carried to its base.
    auto slot = slot_of(targets[i]);
    refresh(*slot, *fake_storage(targets[i]));
    write(targets[i], slot->parent ? fit(slot->type, slot->value, value) : value);
  }
  push_mutating_results(*this, schema, info, node, stack);
}

}  // namespace graphlift::torch_layer
