// Owns: classifying the calls of a joint graph.
// Must not: choose what is saved.
#include "autograd/joint.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "ops/traits.h"

namespace graphlift::autograd {
namespace {

using ops::Effect;
using ops::Work;

class Analysis {
 public:
  explicit Analysis(Joint* joint) : joint_(*joint) {}

  void number(const ir::Graph& graph, int primals, int forward_outputs) {
    joint_.primals = primals;
    std::unordered_map<const ir::Node*, int> first_values;
    for (const ir::Node& node : graph.nodes()) {
      Joint::Call call;
      call.node = &node;
      call.first_value = static_cast<int>(joint_.definer.size());
      for (const ir::Arg& arg : node.args)
        ir::for_each_value(
            arg, [&](const ir::ValueRef& value) { call.reads.push_back(first_values.at(value.node) + value.index); });
      const ir::ValueRef* viewed = ops::viewed_value(node);
      first_values[&node] = call.first_value;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        int value = static_cast<int>(joint_.definer.size());
        joint_.definer.push_back(static_cast<int>(joint_.calls.size()));
        joint_.owner.push_back(viewed ? joint_.owner[first_values.at(viewed->node) + viewed->index] : value);
      }
      traits_.push_back(node.kind == ir::NodeKind::Input ? ops::OpTraits{Effect::None, Work::View}
                                                         : ops::traits(node.op));
      joint_.calls.push_back(std::move(call));
    }
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const ir::ValueRef* value = graph.outputs()[i].value();
      bool is_output = i < static_cast<size_t>(forward_outputs);
      (is_output ? joint_.outputs : joint_.gradients)
          .push_back(value ? first_values.at(value->node) + value->index : -1);
    }
    mark_engine(graph.inputs().size() > static_cast<size_t>(primals));
    joint_.read_late.assign(joint_.definer.size(), false);
    find_writes();
  }

  void mark_forward() {
    for (int value : joint_.outputs)
      if (value >= 0) joint_.calls[joint_.definer[value]].forward = true;
    for (size_t c = joint_.calls.size(); c-- > 0;) {
      Joint::Call& call = joint_.calls[c];
      call.forward |= traits_[c].effect != Effect::None && !call.engine;
      if (!call.forward) continue;
      for (int value : call.reads) joint_.calls[joint_.definer[value]].forward = true;
    }
  }

  void mark_late() {
    bool again = true;
    while (again) {
      for (size_t c = 0; c < joint_.calls.size(); ++c) joint_.calls[c].late |= is_late(c);
      // Memory that backward writes into is made in backward, or a second backward would find it written.
      again = false;
      for (const Write& write : writes_) {
        Joint::Call& owner = joint_.calls[joint_.definer[write.owner]];
        bool call = owner.node->kind == ir::NodeKind::Call && !owner.late && !owner.forward;
        bool moves = call && joint_.calls[write.call].late;
        owner.late |= moves;
        again |= moves;
      }
    }
    for (const Joint::Call& call : joint_.calls)
      GL_CHECK(!(call.late && call.forward), "a forward output or an effect in forward depends on tangents");
  }

  void mark_fixed() {
    std::vector<bool> written(joint_.definer.size(), false);
    for (const Write& write : writes_) written[write.owner] = true;
    for (size_t c = 0; c < joint_.calls.size(); ++c) {
      Joint::Call& call = joint_.calls[c];
      if (call.late || call.node->kind == ir::NodeKind::Input) continue;
      call.fixed = traits_[c].effect != Effect::None;
      for (int value : call.reads) call.fixed |= written[joint_.owner[value]];
      for (size_t i = 0; i < call.node->outputs.size(); ++i) call.fixed |= written[joint_.owner[call.first_value + i]];
    }
  }

  void mark_wanted() {
    for (int value : joint_.gradients) {
      if (value < 0) continue;
      joint_.calls[joint_.definer[value]].wanted = true;
      joint_.read_late[value] = true;
    }
    for (size_t c = joint_.calls.size(); c-- > 0;) {
      Joint::Call& call = joint_.calls[c];
      call.wanted |= call.late && traits_[c].effect != Effect::None;
      if (!call.wanted) continue;
      for (int value : call.reads) {
        joint_.calls[joint_.definer[value]].wanted = true;
        if (call.late) joint_.read_late[value] = true;
      }
    }
  }

 private:
  struct Write {
    int call;
    int owner;  // a value
  };

  // The engine's last run comes behind all that the function did.
  void mark_engine(bool has_tangents) {
    for (size_t c = joint_.calls.size(); has_tangents && c-- > 0 && joint_.calls[c].node->backward;)
      joint_.calls[c].engine = true;
  }

  // In-place operators write their first argument; what other operators with effects write is not known.
  void find_writes() {
    for (size_t c = 0; c < joint_.calls.size(); ++c) {
      if (traits_[c].effect != Effect::Write) continue;
      const ir::Node& node = *joint_.calls[c].node;
      std::string_view base = node.op.str().substr(0, node.op.str().rfind('.'));
      size_t count = joint_.calls[c].reads.size();
      if (base.ends_with('_') && !node.args.empty()) {
        count = 0;
        ir::for_each_value(node.args[0], [&](const ir::ValueRef&) { ++count; });
      }
      for (size_t i = 0; i < count; ++i)
        writes_.push_back({static_cast<int>(c), joint_.owner[joint_.calls[c].reads[i]]});
    }
  }

  bool is_late(size_t c) const {
    const Joint::Call& call = joint_.calls[c];
    if (call.node->kind == ir::NodeKind::Input) return c >= static_cast<size_t>(joint_.primals);
    auto from_late = [&](int value) { return joint_.calls[joint_.definer[value]].late; };
    if (std::any_of(call.reads.begin(), call.reads.end(), from_late)) return true;
    if (call.forward) return false;
    // What the engine recorded may move to forward when it is cheap and makes what is saved smaller.
    bool movable = traits_[c].effect == Effect::None && traits_[c].work != Work::Heavy;
    return call.engine && (call.node->must_recompute || !movable);
  }

  Joint& joint_;
  std::vector<ops::OpTraits> traits_;
  std::vector<Write> writes_;
};

}  // namespace

ir::ValueRef Joint::value(int number) const {
  const Call& call = calls[definer[number]];
  return {const_cast<ir::Node*>(call.node), number - call.first_value};
}

Joint analyze(const ir::Graph& graph, int primals, int forward_outputs) {
  GL_CHECK(static_cast<size_t>(primals) <= graph.inputs().size(), "more primals than inputs");
  GL_CHECK(static_cast<size_t>(forward_outputs) <= graph.outputs().size(), "more forward outputs than outputs");
  Joint joint;
  Analysis analysis(&joint);
  analysis.number(graph, primals, forward_outputs);
  analysis.mark_forward();
  analysis.mark_late();
  analysis.mark_fixed();
  analysis.mark_wanted();
  return joint;
}

}  // namespace graphlift::autograd
