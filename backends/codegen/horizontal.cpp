// Owns: see horizontal.h.
#include "backends/codegen/horizontal.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "backends/codegen/horizontal_order.h"
#include "base/error.h"
#include "ops/traits.h"

namespace graphlift::codegen {
namespace {

using Parts = std::vector<const ir::Node*>;

// Kernels and views that stand one after another, and in which order they may run instead.
class Run {
 public:
  Run(const FusedGraph& fused, const HorizontalOptions& options, const Parts& nodes) : fused_(fused), nodes_(nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) place_[nodes[i]] = static_cast<int>(i);
    before_.resize(nodes.size());
    levels_.resize(nodes.size(), 0);
    for (size_t i = 0; i < nodes.size(); ++i) add_edges(static_cast<int>(i));
    find_sets(options);
  }

  // What runs one after another; several nodes: together.
  std::vector<Parts> steps() {
    emitted_.assign(nodes_.size(), false);
    for (size_t i = 0; i < nodes_.size(); ++i) emit(static_cast<int>(i));
    return std::move(steps_);
  }

 private:
  void depend(int node, int earlier) {
    before_[static_cast<size_t>(node)].push_back(earlier);
    int& level = levels_[static_cast<size_t>(node)];
    level = std::max(level, levels_[static_cast<size_t>(earlier)] + 1);
  }

  // A kernel waits for what it reads, and for those that read what it writes over.
  void add_edges(int at) {
    const ir::Node& node = *nodes_[static_cast<size_t>(at)];
    for (const ir::Arg& arg : node.args)
      ir::for_each_value(arg, [&](const ir::ValueRef& value) {
        if (const auto found = place_.find(value.node); found != place_.end()) depend(at, found->second);
        readers_[ops::memory_owner(value)].push_back(at);
      });
    if (node.op != kernel_op()) return;
    const ir::ArgList& inputs = *node.args[1].list();
    for (const KernelMemory::Result& result : fused_.memory[index_of(node)].results)
      if (result.target >= 0)
        for (const int reader : readers_[ops::memory_owner(*inputs[static_cast<size_t>(result.target)].value())])
          if (reader != at) depend(at, reader);
  }

  // Parts of one level wait for each other in no way, and neither do sets of them.
  void find_sets(const HorizontalOptions& options) {
    std::map<std::pair<int, std::string>, std::vector<int>> found;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (std::string program = part_program(fused_, *nodes_[i], options); !program.empty())
        found[{levels_[i], std::move(program)}].push_back(static_cast<int>(i));
    for (auto& [key, set] : found)
      if (set.size() > 1)
        for (const int member : set) set_of_[member] = set;
  }

  void emit(int at) {
    if (emitted_[static_cast<size_t>(at)]) return;
    const auto set = set_of_.find(at);
    const std::vector<int> members = set == set_of_.end() ? std::vector<int>{at} : set->second;
    for (const int member : members)
      for (const int earlier : before_[static_cast<size_t>(member)]) emit(earlier);
    Parts step;
    for (const int member : members) {
      emitted_[static_cast<size_t>(member)] = true;
      step.push_back(nodes_[static_cast<size_t>(member)]);
    }
    steps_.push_back(std::move(step));
  }

  const FusedGraph& fused_;
  const Parts& nodes_;
  std::unordered_map<const ir::Node*, int> place_;
  std::unordered_map<ir::ValueRef, std::vector<int>, ir::ValueHash> readers_;  // of memory
  std::vector<std::vector<int>> before_;
  std::vector<int> levels_;
  std::unordered_map<int, std::vector<int>> set_of_;
  std::vector<bool> emitted_;
  std::vector<Parts> steps_;
};

// The graph written again with these steps.
class Writer {
 public:
  explicit Writer(FusedGraph* fused) : fused_(*fused) {}

  void write(const std::vector<Parts>& steps) {
    for (const ir::Node* input : fused_.graph->inputs())
      values_[{const_cast<ir::Node*>(input), 0}] = {graph_->add_input(input->input_name, *input->outputs[0]), 0};
    for (const Parts& step : steps) step.size() == 1 ? copy(*step[0]) : join(step);
    for (const ir::Arg& output : fused_.graph->outputs()) graph_->outputs().push_back(translated(output));
    fused_.graph = std::move(graph_);
  }

 private:
  ir::Arg translated(ir::Arg arg) const {
    ir::for_each_value(arg, [&](ir::ValueRef& value) { value = values_.at(value); });
    return arg;
  }

  void put(const ir::Node& node, ir::Node* made, int first) {
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i)
      values_[{const_cast<ir::Node*>(&node), i}] = {made, first + i};
  }

  void copy(const ir::Node& node) {
    ir::ArgList args;
    for (const ir::Arg& arg : node.args) args.push_back(translated(arg));
    ir::Node* made = graph_->add_call(node.op, std::move(args), node.outputs, node.where);
    made->backward = node.backward;
    put(node, made, 0);
  }

  void join(const Parts& parts) {
    const Kernel& first = fused_.kernels[index_of(*parts[0])];
    const auto any = of_any_size(first);
    MultiKernel multi{{}, any ? *any : first};
    ir::ArgList inputs;
    std::vector<std::optional<ir::TensorType>> outputs;
    for (const ir::Node* part : parts) {
      const ir::ArgList& own = *part->args[1].list();
      multi.parts.push_back({index_of(*part), own.size()});
      for (const ir::Arg& input : own) inputs.push_back(translated(input));
      outputs.insert(outputs.end(), part->outputs.begin(), part->outputs.end());
    }
    const ir::Arg index = static_cast<int64_t>(fused_.multis.size());
    ir::Node* made =
        graph_->add_call(multi_kernel_op(), {index, ir::Arg(std::move(inputs))}, std::move(outputs), parts[0]->where);
    int at = 0;
    for (const ir::Node* part : parts) {
      put(*part, made, at);
      at += static_cast<int>(part->outputs.size());
    }
    fused_.multis.push_back(std::move(multi));
  }

  FusedGraph& fused_;
  std::unique_ptr<ir::Graph> graph_ = std::make_unique<ir::Graph>();
  std::unordered_map<ir::ValueRef, ir::ValueRef, ir::ValueHash> values_;
};

}  // namespace

void fuse_horizontally(FusedGraph* fused, const HorizontalOptions& options) {
  std::vector<Parts> steps;
  bool any = false;
  Parts run;
  auto end_run = [&] {
    for (Parts& step : Run(*fused, options, run).steps()) {
      any = any || step.size() > 1;
      steps.push_back(std::move(step));
    }
    run.clear();
  };
  for (const ir::Node* node : gathered(*fused, options)) {
    if (node->op == kernel_op() || ops::viewed_value(*node)) {
      run.push_back(node);
      continue;
    }
    end_run();
    steps.push_back({node});
  }
  end_run();
  if (!any) return;
  Writer(fused).write(steps);
  const std::string wrong = verify(*fused);
  GL_CHECK(wrong.empty(), "horizontal fusion left a malformed graph: " + wrong);
}

}  // namespace graphlift::codegen
