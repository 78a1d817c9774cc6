// Owns: see lower.h.
#include "backends/codegen/lower.h"

#include <deque>
#include <optional>
#include <unordered_set>

#include "backends/codegen/lower_rule.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "ops/layout.h"
#include "ops/shape_arg.h"
#include "ops/shape_rule.h"
#include "ops/traits.h"

namespace graphlift::codegen {
namespace {

class Lowering {
 public:
  Lowering(const ir::Graph& graph, const LowerOptions& options, Lowered* result)
      : graph_(graph), options_(options), result_(*result) {
    for (size_t i = 0; i < ir::symbol_count(graph); ++i) guessed_.new_symbol(kLeastGuess + static_cast<int64_t>(i), "");
  }

  void run() {
    std::unordered_set<const ir::Node*> absorbed;
    for (const auto& [last, epilogue] : options_.epilogues) {
      absorbed.insert(epilogue.before.begin(), epilogue.before.end());
      absorbed.insert(epilogue.beside.begin(), epilogue.beside.end());
    }
    for (const ir::Node& node : graph_.nodes()) {
      if (absorbed.count(&node)) continue;
      if (const auto found = options_.epilogues.find(&node); found != options_.epilogues.end())
        keep_chain(node, found->second);
      else if (node.kind == ir::NodeKind::Input)
        define(node, 0, result_.graph.buffer(ref(node, 0), *node.outputs[0]));
      else if (!lower_call(node))
        leave(node);
    }
  }

 private:
  static ir::ValueRef ref(const ir::Node& node, size_t index) {
    return {const_cast<ir::Node*>(&node), static_cast<int>(index)};
  }

  void define(const ir::Node& node, size_t index, Value value) {
    if (!value->value) value->value = ref(node, index);
    result_.values[ref(node, index)] = value;
  }

  bool computable(const ir::TensorType& type) const {
    return compute_type(type.dtype) && (type.device.type == options_.device_type || type.rank() == 0);
  }

  bool is_kept(const ir::Node& node) const { return options_.keeps && options_.keeps(node); }

  bool refuse(std::string_view words) {
    refusal_ = words;
    return false;
  }

  bool suitable(const ir::Node& node) {
    if (node.kind != ir::NodeKind::Call || is_kept(node)) return false;
    bool fits = true, any = false;
    for (const auto& type : node.outputs) {
      if (!type) continue;
      fits = fits && computable(*type) && type->device.type == options_.device_type;
      any = true;
    }
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) { fits = fits && computable(graph_.type(value)); });
    if (!fits) return refuse("a tensor is of another device, or of a dtype that kernels don't compute with");
    if (!any) return refuse("it has no tensor as result");
    return !is_declined(node) || refuse("its shape rule declines these dtypes: torch's kernel may raise");
  }

  // Eager refuses some operands by their dtypes, as the rule does, where torch's kernel for the meta device is more
  // lenient: declined as they are, not of other dtypes. Sizes that vary are guessed, the same for all dtypes.
  bool is_declined(const ir::Node& node) {
    const ops::OpRow* row = ops::find_op(node.op);
    if (!row || takes(*row, node, std::nullopt)) return false;
    return takes(*row, node, ir::DType::float32) || takes(*row, node, ir::DType::int64);
  }

  bool takes(const ops::OpRow& row, const ir::Node& node, std::optional<ir::DType> dtype) {
    std::deque<ir::TensorType> types;
    std::vector<ops::ShapeArg> args;
    for (const ir::Arg& arg : node.args) {
      args.push_back(ops::shape_arg(arg));
      if (dtype == ir::DType::int64 && std::holds_alternative<double>(args.back())) args.back() = ir::Sym(1);
      const auto* type = std::get_if<const ir::TensorType*>(&args.back());
      if (!dtype || !type || !*type) continue;
      types.push_back(**type);
      types.back().dtype = *dtype;
      args.back() = &types.back();
    }
    std::vector<std::optional<ir::TensorType>> results;
    ops::ShapeCall call{.args = args, .env = guessed_, .results = results};
    return row.shape(call);
  }

  bool apply(const LowerRow& row, LowerCall& call) {
    try {
      return row.rule(call) || refuse("kernels do not do it with these arguments");
    } catch (const NotLowered&) {
      return refuse("its operands' sizes are not known to fit, though they do");
    }
  }

  bool lower_call(const ir::Node& node) {
    const ir::ValueRef* viewed = ops::viewed_value(node);
    const LowerRow* row = find_lowering(node.op);
    refusal_ = "kernels do not do it";
    const std::function<Value(const ir::ValueRef&)> read = [&](const ir::ValueRef& value) {
      return result_.values.at(value);
    };
    LowerCall call{node,
                   result_.graph,
                   read,
                   options_.gathers,
                   options_.gathers || options_.places,
                   options_.moments,
                   options_.skips_loads};
    if (row && suitable(node) && apply(*row, call) && accept(node, viewed != nullptr, call.results)) return true;
    if (!viewed || node.outputs.empty()) return false;
    for (const auto& type : node.outputs)  // another kind of elements (view_as_real) has no index map
      if (type && type->dtype != graph_.type(*viewed).dtype)
        return refuse("a view whose elements are of another dtype");
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i]) define(node, i, result_.graph.alias(read(*viewed), *node.outputs[i]));
    return true;
  }

  // The results as the graph's values: of the stored type, each with memory of its own unless it is a view.
  bool accept(const ir::Node& node, bool is_view, std::vector<Value>& results) {
    if (results.size() != node.outputs.size()) return refuse("kernels do not make all of its results");
    for (size_t i = 0; i < results.size(); ++i) {
      if (!node.outputs[i]) continue;
      if (!results[i]) return refuse("kernels do not make all of its results");
      if (!ops::same(results[i]->sizes, node.outputs[i]->sizes))
        return refuse("the sizes of its result are not known to be its operands', though they are");
    }
    std::vector<Value> defined(results.size(), nullptr);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!node.outputs[i]) continue;
      defined[i] = is_view ? results[i] : owned(results[i], *node.outputs[i]);
      define(node, i, defined[i]);
    }
    if (!is_view) result_.calls.push_back({&node, false, std::move(defined)});
    return true;
  }

  Value owned(Value value, const ir::TensorType& type) {
    value = result_.graph.cast(value, *compute_type(type.dtype));
    if (options_.round_each_call) value = result_.graph.rounded(value, type.dtype);
    const bool fresh = value->computed() && !value->value;
    return fresh ? value : result_.graph.map(Prim::Copy, {value});
  }

  // The call stays torch's, and who asks for hints is told why.
  void leave(const ir::Node& node) {
    keep(node);
    if (is_kept(node) || !node.op.str().starts_with("aten::")) return;
    log(Artifact::PerfHints, [&] {
      const std::string where = node.where.file.empty() ? "" : cat(" (", node.where.file, ":", node.where.line, ")");
      return cat(node.op.str(), where, " is left to torch: ", refusal_);
    });
  }

  void keep(const ir::Node& node) {
    LoweredCall call{&node, true, std::vector<Value>(node.outputs.size(), nullptr)};
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i]) continue;
      call.results[i] = result_.graph.buffer(ref(node, i), *node.outputs[i]);
      define(node, i, call.results[i]);
    }
    result_.calls.push_back(std::move(call));
  }

  void keep_chain(const ir::Node& last, const Epilogue& epilogue) {
    keep(last);
    for (const ir::Node* extra : epilogue.extras()) {
      define(*extra, 0, result_.graph.buffer(ref(*extra, 0), *extra->outputs[0]));
      result_.made_by.emplace(extra, &last);
    }
  }

  const ir::Graph& graph_;
  const LowerOptions& options_;
  static constexpr int64_t kLeastGuess = 67;
  ir::ShapeEnv guessed_;
  Lowered& result_;
  std::string_view refusal_;  // why the call at hand is not lowered
};

}  // namespace

std::unique_ptr<Lowered> lower(const ir::Graph& graph, const LowerOptions& options) {
  auto result = std::make_unique<Lowered>();
  result->epilogues = options.epilogues;
  Lowering(graph, options, result.get()).run();
  return result;
}

Chain Lowered::chain_of(const ir::Node& call) const {
  const auto found = epilogues.find(&call);
  Chain chain = found == epilogues.end() ? Chain() : found->second.before;
  chain.push_back(&call);
  return chain;
}

const Epilogue& Lowered::epilogue_of(const ir::Node& call) const {
  static const Epilogue none;
  const auto found = epilogues.find(&call);
  return found == epilogues.end() ? none : found->second;
}

const ir::Node* Lowered::maker_of(const ir::Node& call) const {
  const auto found = made_by.find(&call);
  return found == made_by.end() ? &call : found->second;
}

}  // namespace graphlift::codegen
