// Owns: the end of a recording: what became of inputs, how outputs relate to inputs and to each other, the backward by
// torch's engine on stand-ins, and the joint graph. Must not: change what was recorded, except to drop what nothing
// needs.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "ir/known_sizes.h"
#include "ops/layout.h"
#include "torch/any_layout.h"
#include "torch/convert.h"
#include "torch/tracer_impl.h"

namespace graphlift::torch_layer {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::variable_list;

constexpr std::string_view kBackwardAgain = "Trying to backward through the graph a second time";
constexpr std::string_view kWrittenOver = "has been modified by an inplace operation";
constexpr std::string_view kCheckpointRefuses = "torch.utils.checkpoint is incompatible with .grad()";

// What a gradient arrives at: a primal that requires one, or a leaf that the region made and hands out.
struct Target {
  Edge edge;
  at::Tensor leaf;  // undefined for a primal with a history
  int* gradient;    // where its number goes
};

// Something that receives a gradient from outside: an output, or the new value of an input.
struct Root {
  at::Tensor tensor;
  int* tangent;  // where its number goes
};

bool same_sizes(const ir::Dims& a, const ir::Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ir::Sym& x, const ir::Sym& y) { return x.same(y); });
}

bool is_one_of_many(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(tensor);
  return meta && meta->has_bw_view() && meta->get_creation_meta() == torch::autograd::CreationMeta::MULTI_OUTPUT_NODE;
}

uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<uint32_t>(tensor._version());
}

class Finish {
 public:
  Finish(Recorder& recorder, std::vector<Primal>& primals, std::vector<at::Tensor> outputs, bool forward_only)
      : recorder_(recorder), primals_(primals), outputs_(std::move(outputs)), forward_only_(forward_only) {}

  std::unique_ptr<Traced> run(std::span<PyObject* const> objects) {
    auto traced = std::make_unique<Traced>();
    traced_ = traced.get();
    for (size_t i = 0; i < primals_.size(); ++i) plan_input(i);
    for (int primal : recorder_.seen_by_offset()) primals_[static_cast<size_t>(primal)].facts->offset_matters = true;
    refuse_aliased_writes();
    add_bases();
    for (size_t i = 0; i < outputs_.size(); ++i) plan_output(i, i < objects.size() ? objects[i] : nullptr);
    refuse_views_of_views();
    ir::ArgList results = forward_results();
    if (!forward_only_) run_backward(&results);
    refuse_data_that_backward_reads();
    recorder_.graph().outputs() = std::move(results);
    drop_unused();
    put_known_sizes();
    traced->acts = recorder_.acts();
    for (const at::Tensor& constant : recorder_.constants())
      traced->constants.push_back(Ref::steal(THPVariable_Wrap(constant)));
    traced->joint = recorder_.take_graph();
    return traced;
  }

 private:
  ir::ShapeEnv& shapes() { return recorder_.shapes(); }
  void refuse(const std::string& words) {
    if (traced_->refuse.empty()) traced_->refuse = words;
  }
  ir::ValueRef content(const Primal& primal) const { return primal.slot->value; }

  void plan_input(size_t index) {
    Primal& primal = primals_[index];
    InputPlan plan;
    plan.type = primal.facts->tensor;
    plan.number = primal.number;
    FakeImpl* impl = fake_impl(primal.seen);
    plan.mutated_metadata = impl->slot() != primal.slot && !impl->given_data();
    const bool history = primal.seen.requires_grad() && history_changed(primal);
    if (impl->given_data() && (history || primal.seen._version() != 0))
      refuse("an input that is given the data of another tensor is written to");
    if (impl->given_data() && !same_sizes(impl->slot()->type.sizes, plan.type.sizes))
      refuse("an input is given data of another size");
    plan.mutated_data = !(content(primal) == ir::ValueRef{primal.input, 0});
    if (plan.mutated_metadata) refuse("the sizes, strides or data of an input are replaced");
    bool flows = plan.mutated_data && history;
    plan.version = version_of(primal.seen);
    plan.unversioned = plan.mutated_data && plan.version == 0;
    plan.mutated_under_no_grad = plan.mutated_data && !flows && primal.seen.requires_grad();
    traced_->inputs.push_back(std::move(plan));
    if (flows) roots_.push_back({primal.seen, nullptr});
    mutation_roots_.push_back(flows ? static_cast<int>(roots_.size()) - 1 : -1);
  }

  bool history_changed(const Primal& primal) const {
    Edge now = torch::autograd::impl::gradient_edge(primal.seen);
    if (primal.facts->leaf && primal.edge.is_valid()) return now.function != primal.edge.function;
    return !now.function || !dynamic_cast<OutsideHistory*>(now.function.get());
  }

  void refuse_aliased_writes() {
    for (size_t i = 0; i < primals_.size(); ++i) {
      if (!traced_->inputs[i].mutated_data) continue;
      const auto& memory = THPVariable_Unpack(primals_[i].object.get()).storage();
      for (size_t j = 0; j < primals_.size(); ++j)
        if (i != j && !primals_[j].number && THPVariable_Unpack(primals_[j].object.get()).storage().is_alias_of(memory))
          refuse("an input is written to that shares memory with another input");
    }
  }

  // An input that is given other data at the exit is kept for the backward as the tensor that it is.
  void refuse_data_that_backward_reads() {
    if (traced_->tangents == 0) return;
    std::unordered_set<const ir::Node*> given;
    for (const Primal& primal : primals_)
      if (!primal.number && fake_impl(primal.seen)->given_data()) given.insert(primal.input);
    if (given.empty()) return;
    for (const ir::Node& node : recorder_.graph().nodes())
      for (const ir::Arg& arg : node.args)
        ir::for_each_value(arg, [&](const ir::ValueRef& value) {
          if (given.contains(value.node))
            refuse("an input is given the data of another tensor before its gradient flows");
        });
  }

  // A lazy conjugate of an input, for instance: torch says that it is a view, and its stand-in has memory of its own.
  void refuse_views_of_views() {
    for (const OutputPlan& plan : traced_->outputs)
      if (plan.aliasing == Aliasing::ViewOfOutput &&
          traced_->outputs[static_cast<size_t>(plan.of)].aliasing != Aliasing::Fresh)
        refuse("a result shares memory in a way that can't be made again");
  }

  bool is_whole(const at::Tensor& tensor) {
    return recorder_.slot_of(tensor) == fake_storage(tensor)->base && !tensor.is_view();
  }

  int index_of(const at::Tensor& tensor) {
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].is_same(tensor)) return static_cast<int>(i);
    return -1;
  }

  // A view whose base the program does not hand out needs it all the same: views of one base share memory and
  // gradients.
  void add_bases() {
    const size_t given = outputs_.size();
    for (size_t i = 0; i < given; ++i) {
      if (!outputs_[i].is_view() || fake_storage(outputs_[i])->primal >= 0) continue;
      at::Tensor base(outputs_[i]._base());
      if (fake_storage(base) && is_whole(base) && index_of(base) < 0) outputs_.push_back(std::move(base));
    }
  }

  // The output that owns the memory of output `index`, and is no view itself; -1: it owns it.
  int owner_among_outputs(size_t index) {
    const at::Tensor& output = outputs_[index];
    if (output.is_view())
      if (int base = index_of(at::Tensor(output._base())); base >= 0) return base;
    // Among tensors of the whole memory the first one with a history owns it, else the first one.
    int owner = is_whole(output) ? static_cast<int>(index) : -1;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (i == index || fake_storage(outputs_[i]) != fake_storage(output) || !is_whole(outputs_[i])) continue;
      const bool history = outputs_[i].grad_fn() != nullptr;
      const bool owner_has = owner >= 0 && outputs_[static_cast<size_t>(owner)].grad_fn() != nullptr;
      const bool better = owner < 0 || (history && !owner_has);
      const bool earlier = owner >= 0 && static_cast<int>(i) < owner && history == owner_has;
      if (better || earlier) owner = static_cast<int>(i);
    }
    return owner == static_cast<int>(index) ? -1 : owner;
  }

  void plan_output(size_t index, PyObject* object) {
    const at::Tensor& output = outputs_[index];
    if (output.is_view() && fake_storage(output._base()) && fake_storage(output._base()) != fake_storage(output))
      refuse("a result is a view of a tensor that was given other memory");
    auto slot = recorder_.slot_of(output);
    FakeStorage* storage = fake_storage(output);
    OutputPlan plan;
    plan.type = slot->type;
    plan.requires_grad = output.requires_grad();
    plan.inference = output.is_inference();
    plan.as_parameter = object && reinterpret_cast<PyObject*>(Py_TYPE(object)) != THPVariableClass;
    plan.detached = !output.is_view();
    plan.no_history = output.is_view() && !output.grad_fn();
    plan.one_of_many = is_one_of_many(output);
    if (storage->primal >= 0) {
      Primal& primal = primals_[static_cast<size_t>(storage->primal)];
      bool itself = primal.seen.is_same(output);
      plan.aliasing = itself ? Aliasing::Input : Aliasing::ViewOfInput;
      plan.of = storage->primal;
      if (!itself) primal.facts->offset_matters = true;
    } else if (int owner = owner_among_outputs(index); owner >= 0) {
      plan.aliasing = Aliasing::ViewOfOutput;
      plan.of = owner;
    }
    bool fresh = plan.aliasing == Aliasing::Fresh;
    if (!fresh) show_strides(&plan.type);
    if (fresh) plan.detached = false;
    if (fresh) plan.version = version_of(output);
    if (plan.aliasing != Aliasing::Input && plan.detached && output.grad_fn())
      refuse("a detached alias is given a value with a gradient");
    plan.differentiable = fresh && plan.requires_grad && output.grad_fn();
    traced_->outputs.push_back(std::move(plan));
    if (traced_->outputs.back().differentiable) roots_.push_back({output, nullptr});
    output_roots_.push_back(traced_->outputs.back().differentiable ? static_cast<int>(roots_.size()) - 1 : -1);
  }

  // In eager a dim of size 1 that is expanded to 1 keeps its stride, which the program sees of a view.
  void show_strides(ir::TensorType* type) {
    for (size_t d = type->sizes.size(); d-- > 0;) {
      const ir::Sym& size = type->sizes[d];
      if (size.is_constant() || !type->strides[d].same(0) || !ops::at_most(shapes(), size, 1)) continue;
      type->strides[d] = d + 1 == type->sizes.size() ? ir::Sym(1) : type->sizes[d + 1] * type->strides[d + 1];
    }
  }

  ir::ArgList forward_results() {
    ir::ArgList results;
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (traced_->outputs[i].aliasing != Aliasing::Input) results.emplace_back(recorder_.value_of(outputs_[i]));
    for (size_t i = 0; i < primals_.size(); ++i)
      if (traced_->inputs[i].mutated_data) results.emplace_back(content(primals_[i]));
    return results;
  }

  // --- backward ------------------------------------------------------------------------------------------------------

  at::Tensor make_tangent(const at::Tensor& of, int number) {
    ir::TensorType type = recorder_.slot_of(of)->type;
    type.offset = 0;
    type.requires_grad = false;
    bool repeats = false;
    for (int d = 0; d < type.rank(); ++d) repeats |= type.strides[d].same(0) && !type.sizes[d].same(1);
    if (repeats) type.strides = ir::contiguous_strides(type.sizes);
    ir::Node* input = recorder_.graph().add_input("tangent" + std::to_string(number), type);
    return recorder_.new_tensor(type, {input, 0});
  }

  void find_targets() {
    for (size_t i = 0; i < primals_.size(); ++i)
      if (primals_[i].edge.is_valid())
        targets_.push_back({primals_[i].edge, primals_[i].root, &traced_->inputs[i].gradient});
    for (size_t i = 0; i < outputs_.size(); ++i) {
      OutputPlan& plan = traced_->outputs[i];
      if (plan.requires_grad && !plan.no_history && outputs_[i].is_leaf() && plan.aliasing != Aliasing::Input)
        targets_.push_back({torch::autograd::impl::gradient_edge(outputs_[i]), outputs_[i], &plan.gradient});
    }
  }

  // Gradients of the targets, undefined where none arrives.
  variable_list differentiate(const std::vector<Root>& roots, const variable_list& tangents) {
    edge_list from;
    for (const Root& root : roots) from.push_back(torch::autograd::impl::gradient_edge(root.tensor));
    edge_list to;
    for (const Target& target : targets_) to.push_back(target.edge);
    try {
      return run_engine(from, tangents, to);
    } catch (python_error& error) {
      if (!is_pending(error, kCheckpointRefuses)) throw;
    }
    return accumulate(from, tangents);
  }

  // Without edges gradients are accumulated into leaves. Everything runs on this thread, whatever the device: hooks are
  // Python code that has to be watched.
  variable_list run_engine(const edge_list& from, const variable_list& tangents, const edge_list& edges) {
    struct Scope {
      Recorder& recorder;
      const AnyLayout any;  // nobody sees what a gradient is a view of
      c10::AutogradState& state = c10::AutogradState::get_tls_state();
      const bool threads = state.get_multithreading_enabled();
      PyThreadState* released = PyEval_SaveThread();
      explicit Scope(Recorder& r) : recorder(r) {
        recorder.set_backward(true);
        state.set_multithreading_enabled(false);
      }
      ~Scope() {
        state.set_multithreading_enabled(threads);
        recorder.set_backward(false);
        PyEval_RestoreThread(released);
      }
    } scope(recorder_);
    return torch::autograd::Engine::get_default_engine().execute(from, tangents, /*keep_graph=*/true,
                                                                 /*create_graph=*/false, edges.empty(), edges);
  }

  // The error's message contains `words`; it is forgotten then.
  static bool is_pending(python_error& error, std::string_view words) {
    error.restore();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Ref text = Ref::steal(PyObject_Str(value));
    const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    bool found = utf8 && std::string_view(utf8).find(words) != std::string_view::npos;
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    if (found)
      PyErr_Clear();
    else
      error.persist();
    return found;
  }

  // As a user's backward() does it, which is all that a reentrant checkpoint allows.
  variable_list accumulate(const edge_list& from, const variable_list& tangents) {
    variable_list before;
    for (Target& target : targets_) {
      before.push_back(target.leaf.grad());
      target.leaf.mutable_grad().reset();
    }
    run_engine(from, tangents, {});
    variable_list gradients;
    for (size_t i = 0; i < targets_.size(); ++i) {
      gradients.push_back(targets_[i].leaf.grad());
      targets_[i].leaf.mutable_grad() = before[i];
    }
    return gradients;
  }

  // A program that ran backward() itself may return a loss whose graph is freed, or whose saved tensors were written
  // to since: it requires grad, and a backward raises. Empty: gradients flow.
  std::string why_dead(const Root& root) {
    try {
      at::Tensor probe = recorder_.new_tensor(recorder_.slot_of(root.tensor)->type, recorder_.value_of(root.tensor));
      differentiate({root}, {probe});
      return "";
    } catch (const c10::Error& error) {
      const std::string words = error.what_without_backtrace();
      for (std::string_view expected : {kBackwardAgain, kWrittenOver})
        if (words.find(expected) != std::string::npos) return words;
      throw;
    }
  }

  // Roots without a living history are none: outputs get a node that raises.
  void bury_dead_roots() {
    std::vector<std::string> words;
    for (const Root& root : roots_) words.push_back(why_dead(root));
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (output_roots_[i] >= 0) traced_->outputs[i].dead_history = words[static_cast<size_t>(output_roots_[i])];
    for (int root : mutation_roots_)
      if (root >= 0 && !words[static_cast<size_t>(root)].empty())
        refuse("an input is given a value whose history was freed");
    size_t at = 0;
    std::erase_if(roots_, [&](const Root&) { return !words[at++].empty(); });
  }

  variable_list make_tangents(const std::vector<Root>& roots) {
    variable_list tangents;
    for (const Root& root : roots) tangents.push_back(make_tangent(root.tensor, static_cast<int>(tangents.size())));
    return tangents;
  }

  void run_backward(ir::ArgList* results) {
    point_roots_to_plans();
    if (roots_.empty()) return;
    find_targets();
    if (recorder_.engine_ran()) bury_dead_roots();
    for (size_t i = 0; i < traced_->outputs.size(); ++i) traced_->outputs[i].differentiable = false;
    if (roots_.empty()) return;
    for (size_t i = 0; i < roots_.size(); ++i) *roots_[i].tangent = static_cast<int>(i);
    for (OutputPlan& plan : traced_->outputs) plan.differentiable = plan.tangent >= 0;
    variable_list gradients = differentiate(roots_, make_tangents(roots_));
    traced_->tangents = static_cast<int>(roots_.size());
    for (size_t i = 0; i < targets_.size(); ++i) {
      if (!gradients[i].defined()) continue;
      *targets_[i].gradient = traced_->gradients++;
      results->emplace_back(recorder_.tensor_argument(gradients[i]));
    }
  }

  void point_roots_to_plans() {
    for (size_t i = 0; i < primals_.size(); ++i)
      if (mutation_roots_[i] >= 0) roots_[mutation_roots_[i]].tangent = &traced_->inputs[i].tangent;
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (output_roots_[i] >= 0) roots_[output_roots_[i]].tangent = &traced_->outputs[i].tangent;
  }

  // --- the graph -----------------------------------------------------------------------------------------------------

  void drop_unused() {
    ir::Graph& graph = recorder_.graph();
    std::unordered_set<const ir::Node*> used;
    auto mark = [&](const ir::ValueRef& value) { used.insert(value.node); };
    for (const ir::Arg& arg : graph.outputs()) ir::for_each_value(arg, mark);
    std::vector<ir::Node*> unused;
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
      if (node->kind == ir::NodeKind::Input) continue;
      if (!used.contains(&*node) && !recorder_.must_stay(&*node)) {
        unused.push_back(&*node);
        continue;
      }
      for (const ir::Arg& arg : node->args) ir::for_each_value(arg, mark);
    }
    for (ir::Node* node : unused) graph.erase(node);
  }

  // All guards of the recording are there by now: what they made equal is written alike.
  void put_known_sizes() {
    ir::put_known_sizes(&recorder_.graph(), shapes());
    for (InputPlan& plan : traced_->inputs) ir::put_known_sizes(&plan.type, shapes());
    for (OutputPlan& plan : traced_->outputs) ir::put_known_sizes(&plan.type, shapes());
  }

  Recorder& recorder_;
  std::vector<Primal>& primals_;
  std::vector<at::Tensor> outputs_;
  bool forward_only_;  // autograd is told nothing: it sees the calls themselves
  Traced* traced_ = nullptr;
  std::vector<Root> roots_;
  std::vector<Target> targets_;
  std::vector<int> mutation_roots_, output_roots_;  // index among roots_, by primal and by output; -1: none
};

}  // namespace

std::unique_ptr<Traced> TracerImpl::finish(std::span<PyObject* const> outputs) {
  if (!recorder_.recording()) recorder_.start();
  struct Stop {
    Recorder& recorder;
    ~Stop() {
      while (recorder.recording()) recorder.stop();
    }
  } stop{recorder_};
  recorder_.rethrow_failure();
  Ref calls;
  if (calls_) {
    calls_->pop();
    recorder_.on_call = nullptr;
    calls = calls_->finish(outputs);
  }
  return with_python_errors([&] {
    std::vector<at::Tensor> tensors;
    for (PyObject* object : outputs) {
      at::Tensor tensor = THPVariable_Unpack(object);
      if (!fake_storage(tensor)) (void)recorder_.tensor_argument(tensor);  // breaks
      tensors.push_back(std::move(tensor));
    }
    auto traced = Finish(recorder_, primals_, std::move(tensors), static_cast<bool>(calls)).run(outputs);
    traced->calls = std::move(calls);
    if (calls_) traced->calls_refused = calls_->refused();
    recorder_.rethrow_failure();
    return traced;
  });
}

}  // namespace graphlift::torch_layer
