// Owns: a region's place in torch's autograd graph: one node per call, and the compiled backward that all calls share.
// Must not: touch Python objects (the engine runs nodes without the GIL), or know plans of outputs.
#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "ir/graph.h"
#include "passes/pass.h"
#include "torch/backward_sharing.h"

namespace graphlift::torch_layer {

// In scope, torch's calls on this thread go below autograd and autocast: what the graph recorded has been through both.
struct BelowAutograd {
  at::AutoDispatchBelowADInplaceOrView below;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
  c10::AutoGradMode no_grad{false};
};

using Symbols = c10::SmallVector<int64_t, 4>;

// The backward of one region. Immutable to its users; variants for undefined tangents are compiled when they are first
// met.
class BackwardProgram {
 public:
  // `graph`: inputs are saved values, then tangents; outputs are gradients. `shared`: by saved value, whether it is a
  // tensor of the program's own, which may be given other data (x.data = y) before the backward.
  BackwardProgram(std::unique_ptr<ir::Graph> graph, std::vector<bool> shared, std::vector<at::Tensor> constants,
                  std::shared_ptr<const backend::Backend> backend, backend::Options how, passes::PassOptions passes);

  size_t saved() const { return shared_.size(); }
  size_t tangents() const { return tangents_.size(); }
  size_t gradients() const { return graph_->outputs().size(); }
  const ir::Graph& graph() const { return *graph_; }

  // The graph as it is compiled for some tangents.
  struct Compiled {
    std::unique_ptr<backend::CompiledGraph> program;
    std::vector<bool> reads;  // by saved value
  };
  // For tangents of which some may be undefined.
  const Compiled& compiled_for(const std::vector<at::Tensor>& tangents) const;
  // Found out when it is first asked for: where some outputs alone are differentiated.
  const BackwardSharing& sharing() const;
  // A saved value as the graph was recorded for it, or an error where it can't be: it has other sizes now.
  at::Tensor as_saved(at::Tensor value, size_t index, std::span<const int64_t> symbols) const;
  // `inputs`: saved values (moved from), undefined where `compiled` does not read them. Undefined where eager has no
  // gradient.
  std::vector<at::Tensor> run(const Compiled& compiled, c10::SmallVectorImpl<at::Tensor>& inputs,
                              std::vector<at::Tensor>&& tangents, std::span<const int64_t> symbols) const;

 private:
  // Some tangents are undefined, or only torch's dispatcher can compute on them.
  struct Variant {
    std::vector<bool> defined;
    bool by_dispatcher = false;
    auto operator<=>(const Variant&) const = default;
  };
  const Compiled& variant(const Variant& wanted) const;
  std::vector<bool> read_by(const ir::Graph& graph) const;
  const ir::TensorType& type(size_t input) const { return graph_->type({graph_->inputs()[input], 0}); }

  std::unique_ptr<ir::Graph> graph_;
  std::vector<bool> shared_;
  std::vector<at::Tensor> constants_;
  std::shared_ptr<const backend::Backend> backend_;
  const backend::Options how_;
  const passes::PassOptions passes_;
  std::vector<ir::TensorType> tangents_;
  Compiled complete_;                             // all tangents defined
  mutable std::mutex mutex_;                      // guards variants_ and sharing_
  mutable std::map<Variant, Compiled> variants_;  // addresses are stable
  mutable std::unique_ptr<const BackwardSharing> sharing_;
};

// torch holds nodes by std::shared_ptr up to 2.12 and by an intrusive pointer since.
using NodePtr = decltype(torch::autograd::Edge::function);

class RegionNode final : public torch::autograd::Node {
 public:
  RegionNode(std::shared_ptr<const BackwardProgram> program, torch::autograd::edge_list&& inputs, Symbols symbols)
      : Node(std::move(inputs)), program_(std::move(program)), symbols_(std::move(symbols)) {
    saved_.resize(program_->saved());
  }

  void save(size_t index, const at::Tensor& tensor, bool is_output) {
    saved_[index] = torch::autograd::SavedVariable(tensor, is_output);
  }

  std::string name() const override { return "GraphliftBackward"; }
  void will_release_variables() override { releasing_ = true; }
  void release_variables() override;

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& tangents) override;
  using ByTangent = c10::SmallVector<bool, 8>;
  void refuse_what_was_freed(const ByTangent& now) const;
  std::vector<bool> needed_later() const;

  std::shared_ptr<const BackwardProgram> program_;
  std::vector<torch::autograd::SavedVariable> saved_;
  Symbols symbols_;
  bool released_ = false;
  bool releasing_ = false;  // this apply is the last one of its tangents: what they alone read may go as it runs
  ByTangent ran_;           // it was in a run that released; empty: there was none
};

// The place of a tensor whose history the region itself used up: a backward raises what eager's would.
class DeadNode final : public torch::autograd::Node {
 public:
  explicit DeadNode(std::string words) : words_(std::move(words)) {}
  std::string name() const override { return "GraphliftBackward"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { TORCH_CHECK(false, words_); }
  std::string words_;
};

template <class N, class... Args>
auto make_node(Args&&... args) {
  if constexpr (std::is_same_v<NodePtr, std::shared_ptr<torch::autograd::Node>>)
    return std::shared_ptr<N>(new N(std::forward<Args>(args)...), [](N* node) { deleteNode(node); });
  else
    return c10::make_intrusive<N>(std::forward<Args>(args)...);
}

}  // namespace graphlift::torch_layer
