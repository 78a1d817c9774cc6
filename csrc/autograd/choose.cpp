// Owns: the flow network of the partition.
//
// Each early call that backward wants has a vertex `in`, each of its outputs a vertex. The sink's side of the cut reads
// "runs in backward" for a call and "is needed in backward" for a value:
//   in -> value          price of saving: cut when the call stays in forward and the value is needed
//   value -> in of user  infinite: a call that runs in backward needs its arguments there
//   value -> sink        infinite: a late call or a gradient reads the value
//   source -> in         price of running the call again
//   in -> sink           price of moving a call that eager runs in backward to forward
// A checkpoint's inner values cost more to save than anything else, so that its calls run again; what leaves it for
// another part of the forward does not, so that it runs again from there.
// Values that live anyway (primals, outputs that eager saves too) are not in the network: they cost nothing.
// Must not: build graphs.
#include "autograd/choose.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "autograd/max_flow.h"
#include "base/error.h"
#include "ops/traits.h"

namespace graphlift::autograd {
namespace {

using ops::Work;

// Counted in 1/16 byte. A saved value costs its bytes and the keeping of one more tensor.
constexpr int64_t kUnit = 16, kPerValue = 64 * kUnit;
constexpr int64_t kCheckpointed = int64_t{1} << 50;
constexpr double kAssumedSize = 64, kMostBytes = double(int64_t{1} << 40);

class Costs {
 public:
  Costs(const Joint& joint, const ir::ShapeEnv* shapes) {
    if (shapes) {
      hints_.assign(shapes->hints().begin(), shapes->hints().end());
      // A size of 1 that varies is a small batch among larger ones.
      std::replace(hints_.begin(), hints_.end(), int64_t{1}, static_cast<int64_t>(kAssumedSize));
      return;
    }
    std::vector<ir::SymbolId> symbols;
    for (const Joint::Call& call : joint.calls)
      for (const auto& type : call.node->outputs)
        if (type)
          for (const ir::Sym& size : type->sizes) size.collect(&symbols);
    for (ir::SymbolId id : symbols)
      if (static_cast<size_t>(id) >= hints_.size()) hints_.resize(id + 1, static_cast<int64_t>(kAssumedSize));
  }

  int64_t bytes(const ir::TensorType& type) const {
    double product = ir::bytes(type.dtype);
    for (const ir::Sym& size : type.sizes) product *= dimension(size);
    return static_cast<int64_t>(std::min(product, kMostBytes));
  }

  int64_t saving(const std::optional<ir::TensorType>& type) const {
    return type ? bytes(*type) * kUnit + kPerValue : MaxFlow::kInfinite;
  }

  // Running one operator again that writes its outputs: bytes / `share`, and its launch.
  int64_t running(const ir::Node& node, int share) const {
    int64_t sum = kUnit;
    for (const auto& type : node.outputs)
      if (type) sum += bytes(*type) * kUnit / share;
    return sum;
  }

 private:
  double dimension(const ir::Sym& size) const {
    if (size.is_constant()) return static_cast<double>(size.constant());
    try {
      return static_cast<double>(std::max<int64_t>(size.eval(hints_), 0));
    } catch (const InternalError&) {
      return kAssumedSize;  // an assumed value made a divisor zero
    }
  }

  std::vector<int64_t> hints_;
};

// Calls that read whole tensors, so that nothing computes their operands on the way.
bool contracts(ir::Op op) {
  static const std::unordered_set<std::string_view> names = {"aten::convolution_backward.default", "aten::mm.default",
                                                             "aten::bmm.default", "aten::addmm.default",
                                                             "aten::baddbmm.default"};
  return names.count(op.str()) > 0;
}

class Network {
 public:
  Network(const Joint& joint, const PartitionOptions& options)
      : joint_(joint),
        options_(options),
        costs_(joint, options.shapes),
        in_(joint.calls.size(), -1),
        out_(joint.definer.size(), -1) {
    find_whole();
  }

  Choice solve() {
    Choice choice{std::vector<bool>(joint_.definer.size(), false), std::vector<bool>(joint_.calls.size(), false)};
    find_free(&choice.saved);
    find_inner();
    source_ = flow_.add_vertex();
    sink_ = flow_.add_vertex();
    for (size_t c = 0; c < joint_.calls.size(); ++c)
      if (in_network(joint_.calls[c])) add_call(c, choice.saved);
    GL_CHECK(flow_.run(source_, sink_) < MaxFlow::kInfinite,
             "backward needs a value that can be neither saved nor made again");
    std::vector<bool> side = flow_.sink_side(sink_);
    for (size_t c = 0; c < joint_.calls.size(); ++c) {
      if (in_[c] < 0) continue;
      choice.again[c] = side[in_[c]];
      const Joint::Call& call = joint_.calls[c];
      for (size_t i = 0; i < call.node->outputs.size(); ++i) {
        int vertex = out_[call.first_value + i];
        if (vertex >= 0 && side[vertex] && !side[in_[c]]) choice.saved[call.first_value + i] = true;
      }
    }
    return choice;
  }

 private:
  static bool in_network(const Joint::Call& call) {
    return call.wanted && !call.late && call.node->kind != ir::NodeKind::Input;
  }

  void find_free(std::vector<bool>* saved) const {
    for (size_t value = 0; value < saved->size(); ++value)
      if (joint_.is_primal(static_cast<int>(value))) (*saved)[value] = true;
    // Eager saves memory rather than values: whoever writes into a view of what was saved is told so. A view of a
    // primal is made again from it, so that the view on the real tensor need not be computed twice.
    std::vector<bool> memory_read_late(saved->size(), false);
    for (size_t value = 0; value < saved->size(); ++value)
      if (joint_.read_late[value]) memory_read_late[joint_.owner[value]] = true;
    for (int value : joint_.outputs)
      if (value >= 0 && memory_read_late[joint_.owner[value]] && !joint_.is_primal(joint_.owner[value]))
        (*saved)[value] = true;
  }

  // What contractions of the backward read has to be in memory, whoever makes it.
  void find_whole() {
    whole_.assign(joint_.definer.size(), false);
    for (const Joint::Call& call : joint_.calls)
      if (call.late && contracts(call.node->op))
        for (const int value : call.reads) whole_[static_cast<size_t>(joint_.owner[value])] = true;
  }

  void find_inner() {
    inner_.assign(joint_.definer.size(), false);
    for (size_t value = 0; value < inner_.size(); ++value) {
      const Joint::Call& definer = joint_.calls[joint_.definer[value]];
      inner_[value] = definer.node->checkpoint != 0 && !definer.fixed;
    }
    for (const Joint::Call& call : joint_.calls)
      for (int value : call.reads)
        if (call.forward && call.node->checkpoint != joint_.calls[joint_.definer[value]].node->checkpoint)
          inner_[value] = false;
    for (int value : joint_.outputs)
      if (value >= 0) inner_[value] = false;
  }

  void add_call(size_t c, const std::vector<bool>& is_free) {
    const Joint::Call& call = joint_.calls[c];
    Work work = ops::traits(call.node->op).work;
    in_[c] = flow_.add_vertex();
    if (int64_t price = price_of_again(call, work)) flow_.add_edge(source_, in_[c], price);
    if (!call.forward && call.engine) flow_.add_edge(in_[c], sink_, costs_.running(*call.node, 16));
    for (int value : call.reads)
      if (out_[value] >= 0) flow_.add_edge(out_[value], in_[c], MaxFlow::kInfinite);
    for (size_t i = 0; i < call.node->outputs.size(); ++i) {
      int value = call.first_value + static_cast<int>(i);
      if (is_free[value]) continue;
      out_[value] = flow_.add_vertex();
      bool view = work == Work::View && !call.fixed;
      const int64_t price = inner_[value] ? kCheckpointed : costs_.saving(call.node->outputs[i]);
      flow_.add_edge(in_[c], out_[value], view ? MaxFlow::kInfinite : price);
      if (joint_.read_late[value]) flow_.add_edge(out_[value], sink_, MaxFlow::kInfinite);
    }
  }

  int64_t price_of_again(const Joint::Call& call, Work work) const {
    if (call.fixed) return MaxFlow::kInfinite;
    if (work == Work::View) return 0;
    if (!options_.recompute) return call.engine && !call.forward ? 0 : MaxFlow::kInfinite;
    if (!call.forward) return 0;  // it runs once, wherever it runs
    switch (work) {
      case Work::Cheap:
        // To write it again takes longer than to keep it.
        return is_whole(call) ? costs_.running(*call.node, 1) + 2 * kPerValue : costs_.running(*call.node, 16);
      case Work::Costly:
        return costs_.running(*call.node, 2);
      default:  // dearer than whatever leaves a checkpoint, cheaper than its inside
        return call.node->checkpoint ? kCheckpointed / 64 : MaxFlow::kInfinite;
    }
  }

  bool is_whole(const Joint::Call& call) const {
    return !call.node->outputs.empty() && whole_[static_cast<size_t>(call.first_value)];
  }

  const Joint& joint_;
  const PartitionOptions& options_;
  Costs costs_;
  MaxFlow flow_;
  int source_ = 0, sink_ = 0;
  std::vector<bool> whole_;    // by value
  std::vector<bool> inner_;    // by value: of a checkpoint, and read by nothing else in forward
  std::vector<int> in_, out_;  // vertices by call and by value; -1: not in the network
};

}  // namespace

Choice choose(const Joint& joint, const PartitionOptions& options) { return Network(joint, options).solve(); }

}  // namespace graphlift::autograd
