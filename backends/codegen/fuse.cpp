// Owns: see fuse.h.
#include "backends/codegen/fuse.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "ops/traits.h"

namespace graphlift::codegen {
namespace {

using Kind = TensorNode::Kind;

class Rewriter {
 public:
  Rewriter(const ir::Graph& graph, const Lowered& lowered, const Grouping& grouping, const FuseOptions& options,
           FusedGraph* result)
      : from_(graph),
        lowered_(lowered),
        grouping_(grouping),
        options_(options),
        result_(*result),
        to_(*result->graph) {}

  void run() {
    for (const ir::Node* input : from_.inputs()) {
      ir::Node* made = to_.add_input(input->input_name, *input->outputs[0]);
      put({const_cast<ir::Node*>(input), 0}, {made, 0});
    }
    for (const Grouping::Step& step : grouping_.steps) {
      if (step.group)
        add_kernel(*step.group);
      else if (step.external)
        grouping_.external_joins.count(step.external) ? add_join(step.external) : add_external(step.external);
    }
    for (const ir::Arg& output : from_.outputs()) to_.outputs().push_back(translated(output));
  }

 private:
  void put(ir::ValueRef from, ir::ValueRef to) {
    values_[from] = to;
    if (const auto found = lowered_.values.find(from); found != lowered_.values.end())
      if (!found->second->is_view()) memory_[found->second] = to;
  }

  ir::Arg translated(ir::Arg arg) {
    ir::for_each_value(arg, [&](ir::ValueRef& value) { value = materialize(value); });
    return arg;
  }

  ir::ArgList translated(const ir::ArgList& args) {
    ir::ArgList made;
    for (const ir::Arg& arg : args) made.push_back(translated(arg));
    return made;
  }

  // The value in the new graph; views are written again when somebody needs them as tensors.
  ir::ValueRef materialize(const ir::ValueRef& value) {
    if (const auto found = values_.find(value); found != values_.end()) return found->second;
    const ir::Node& node = *value.node;
    if (ops::viewed_value(node)) {
      copy_call(node, translated(node.args));
      return values_.at(value);
    }
    const auto found = memory_.find(memory_of(lowered_.values.at(value)));
    GL_CHECK(found != memory_.end(), "a value that is in no memory: " + ir::print(node));
    return found->second;
  }

  void copy_call(const ir::Node& node, ir::ArgList args) { copy_call(node, node.op, std::move(args)); }

  void copy_call(const ir::Node& node, ir::Op op, ir::ArgList args) {
    ir::Node* made = to_.add_call(op, std::move(args), node.outputs, node.where);
    made->backward = node.backward;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      put({const_cast<ir::Node*>(&node), static_cast<int>(i)}, {made, static_cast<int>(i)});
  }

  void add_external(const ir::Node* node) {
    const Chain chain = lowered_.chain_of(*node);
    if (options_.takes && options_.takes(*chain.front())) {
      if (add_native(chain, lowered_.epilogue_of(*node))) return;
      log(Artifact::PerfHints,
          [&] { return cat(node->op.str(), " is left to torch: it is not known how its operands lie in memory"); });
    }
    for (const ir::Node* call : chain) copy_call(*call, translated(call->args));
    for (const ir::Node* call : lowered_.epilogue_of(*node).beside) copy_call(*call, translated(call->args));
  }

  // False: a tensor lies in memory in a way that is not known.
  bool add_native(const Chain& chain, const Epilogue& epilogue) {
    const ir::Node* kept = epilogue.kept < 0 ? nullptr : chain[static_cast<size_t>(epilogue.kept)];
    const ir::Node* beside = epilogue.beside.empty() ? nullptr : epilogue.beside.back();
    NativeOperation operation{chain.front(), {}, Chain(chain.begin() + 1, chain.end()), kept, beside};
    ir::ArgList inputs;
    bool known = true;
    for_each_read(chain, [&](const ir::ValueRef& value) {
      const TensorNode* memory = memory_of(lowered_.values.at(value));
      const auto found = memory_.find(memory);
      known = known && found != memory_.end() && memory->value;
      if (!known) return;
      ir::TensorType type = from_.type(value);
      type.offset = type.offset - from_.type(*memory->value).offset;
      operation.operands.push_back(std::move(type));
      inputs.emplace_back(found->second);
    });
    if (!known) return false;
    const ir::Node& node = *chain.back();
    const ir::Arg index = static_cast<int64_t>(result_.natives.size());
    auto outputs = node.outputs;
    for (const ir::Node* extra : epilogue.extras()) outputs.push_back(extra->outputs[0]);
    ir::Node* made = to_.add_call(native_op(), {index, ir::Arg(std::move(inputs))}, std::move(outputs), node.where);
    made->backward = node.backward;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      put({const_cast<ir::Node*>(&node), static_cast<int>(i)}, {made, static_cast<int>(i)});
    auto place = static_cast<int>(node.outputs.size());
    for (const ir::Node* extra : epilogue.extras()) put({const_cast<ir::Node*>(extra), 0}, {made, place++});
    result_.natives.push_back(std::move(operation));
    return true;
  }

  void add_join(const ir::Node* node) {
    const Value join = lowered_.values.at({const_cast<ir::Node*>(node), 0});
    ir::ArgList parts;
    for (const Value part : join->args) parts.emplace_back(memory_.at(part));
    static const ir::Op cat("aten::cat.default");  // parts of a stack have its dim already
    copy_call(*node, cat, {ir::Arg(std::move(parts)), node->args[1]});
  }

  ir::Device device_of(const Group& group) const {
    for (const Value member : group.members)
      if (member->value) return from_.type(*member->value).device;
    // Parts of what a call computes: the call's results carry the device.
    const int last = group.members.back()->id;
    for (const TensorNode& node : lowered_.graph.nodes())
      if (node.id > last && node.value && node.computed()) return from_.type(*node.value).device;
    return {};
  }

  // Once per tensor and bound.
  void add_check(const PlaceCheck& check) {
    const std::string bound =
        check.size.str() + (check.wraps ? "w" : "") + (check.ignored ? "i" + std::to_string(*check.ignored) : "");
    if (!checked_[check.index].insert(bound).second) return;
    const TensorNode* memory = memory_of(lowered_.values.at(check.index));
    GL_CHECK(memory->value.has_value(), "places that lie in no value's memory");
    ir::TensorType type = from_.type(check.index);
    type.offset = type.offset - from_.type(*memory->value).offset;
    const ir::Arg index = static_cast<int64_t>(result_.checks.size());
    to_.add_call(check_op(), {index, ir::Arg(ir::ArgList{ir::Arg(memory_.at(memory))})}, {}, check.index.node->where);
    result_.checks.push_back({check, std::move(type)});
  }

  void add_kernel(const Group& group) {
    BuiltKernel built = build_kernel(from_, grouping_, group);
    if (built.outputs == 0) return;
    for (const PlaceCheck& check : built.checks) add_check(check);
    const ir::Device device = device_of(group);
    const size_t inputs = built.buffers.size() - built.outputs;
    ir::ArgList read;
    for (size_t i = 0; i < inputs; ++i) read.emplace_back(memory_.at(built.buffers[i]));
    std::vector<std::optional<ir::TensorType>> types;
    for (size_t i = inputs; i < built.buffers.size(); ++i) {
      ir::TensorType type = stored_type(from_, grouping_, *built.buffers[i], device);
      type.requires_grad = false;
      types.push_back(std::move(type));
    }
    const ir::Arg index = static_cast<int64_t>(result_.kernels.size());
    ir::Node* made = to_.add_call(kernel_op(), {index, ir::Arg(std::move(read))}, std::move(types), line_of(group));
    for (size_t i = inputs; i < built.buffers.size(); ++i)
      memory_[built.buffers[i]] = {made, static_cast<int>(i - inputs)};
    result_.kernels.push_back(std::move(built.kernel));
    result_.memory.push_back({inputs, std::vector<KernelMemory::Result>(built.outputs)});
  }

  static ir::SourceLine line_of(const Group& group) {
    for (const Value member : group.members)
      if (member->value) return member->value->node->where;
    return {};
  }

  const ir::Graph& from_;
  const Lowered& lowered_;
  const Grouping& grouping_;
  const FuseOptions& options_;
  FusedGraph& result_;
  ir::Graph& to_;
  std::unordered_map<ir::ValueRef, ir::ValueRef, ir::ValueHash> values_;
  std::unordered_map<const TensorNode*, ir::ValueRef> memory_;
  std::unordered_map<ir::ValueRef, std::set<std::string>, ir::ValueHash> checked_;
};

}  // namespace

const ir::Op& kernel_op() {
  static const ir::Op op("graphlift::kernel");
  return op;
}

const ir::Op& multi_kernel_op() {
  static const ir::Op op("graphlift::kernels");
  return op;
}

const ir::Op& native_op() {
  static const ir::Op op("graphlift::native");
  return op;
}

const ir::Op& check_op() {
  static const ir::Op op("graphlift::check_places");
  return op;
}

int KernelMemory::buffer_of(size_t result) const {
  auto buffer = static_cast<int>(reads);
  for (size_t i = 0; i < result; ++i) buffer += results[i].buffer;
  return buffer;
}

size_t index_of(const ir::Node& call) { return static_cast<size_t>(call.args[0].sym()->constant()); }

namespace {

constexpr Stage kStages[] = {
    {"fusion", [](FuseOptions& options) -> bool& { return options.group.fuse; }, "puts calls into shared kernels"},
    {"epilogues", [](FuseOptions& options) -> bool& { return options.epilogues; },
     "finishes products and convolutions with the calls behind them where that was measured to win"},
    {"inlining", [](FuseOptions& options) -> bool& { return options.group.inline_cheap; },
     "computes cheap values where they are used instead of storing them"},
    {"horizontal_fusion", [](FuseOptions& options) -> bool& { return options.horizontal; },
     "runs many small kernels of one program over different tensors as one call"},
    {"arena", [](FuseOptions& options) -> bool& { return options.arena; },
     "plans where small values between calls lie in one block of memory"},
};

}  // namespace

std::string verify(const FusedGraph& fused) {
  std::string wrong = ir::verify(*fused.graph);
  for (size_t i = 0; i < fused.kernels.size() && wrong.empty(); ++i)
    if (wrong = verify(fused.kernels[i]); !wrong.empty()) wrong += " in kernel\n" + print(fused.kernels[i]);
  return wrong;
}

NativeOperation describe(const Chain& chain, int kept) {
  const ir::Node* beside = kept < 0 ? nullptr : chain[static_cast<size_t>(kept)];
  NativeOperation operation{chain.front(), {}, Chain(chain.begin() + 1, chain.end()), beside};
  for_each_read(chain, [&](const ir::ValueRef& value) { operation.operands.push_back(ir::type_of(value)); });
  return operation;
}

std::span<const Stage> all_stages() { return kStages; }

void leave_out(const std::vector<std::string>& names, FuseOptions* options) {
  for (const Stage& stage : kStages)
    if (std::find(names.begin(), names.end(), stage.name) != names.end()) stage.flag(*options) = false;
}

FusedGraph fuse(const ir::Graph& graph, const FuseOptions& options) {
  LowerOptions how = options.lower;
  if (options.takes) how.keeps = options.takes;
  if (options.epilogues) how.epilogues = find_epilogues(graph, options.takes, options.finishes, options.besides);
  const auto lowered = lower(graph, how);
  const Grouping grouping = group(graph, *lowered, options.group);
  FusedGraph result{std::make_unique<ir::Graph>(), {}, {}, {}, {}, {}};
  Rewriter(graph, *lowered, grouping, options, &result).run();
  std::string wrong = verify(result);
  if (wrong.empty() && result.graph->outputs().size() != graph.outputs().size()) wrong = "it has other outputs";
  GL_CHECK(wrong.empty(), "fusion left a malformed graph: " + wrong);
  return result;
}

}  // namespace graphlift::codegen
