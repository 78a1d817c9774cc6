// Owns: identity and text of convolutions, and their cache.
#include "backends/cpu/convolution.h"

#include <algorithm>
#include <array>

#include "backends/codegen/spec_cache.h"
#include "backends/cpu/contraction_hash.h"
#include "backends/cpu/onednn.h"
#include "base/log.h"
#include "base/text.h"

namespace graphlift::cpu {
namespace {

constexpr std::array kKinds = {"forward", "backward input", "backward weights"};

std::string words(const StridedTensor& tensor) {
  return cat("[", join(tensor.sizes, ","), "]{", join(tensor.strides, ","), "}");
}

// Empty when the numbers fit each other.
std::string invalid(const ConvolutionSpec& spec) {
  const size_t rank = spec.input.sizes.size();
  if (rank < 3 || rank > 5) return "not one, two or three dimensions of space";
  for (const StridedTensor* it : {&spec.input, &spec.weight, &spec.output}) {
    if (it->sizes.size() != rank || it->strides.size() != rank) return "ranks differ";
    for (size_t i = 0; i < rank; ++i) {
      if (it->sizes[i] == 0) return "a tensor has no elements";
      if (it->sizes[i] > 1 && it->strides[i] <= 0) return "a tensor is broadcast";
    }
  }
  for (const std::vector<int64_t>* it : {&spec.stride, &spec.padding, &spec.dilation})
    if (it->size() != rank - 2) return "not one stride, padding and dilation per dimension of space";
  for (const PostOp& it : spec.post)
    if (operand_of(it.kind) == PostOpOperand::Tensor && it.operand.strides.size() != rank) return "ranks differ";
  if (!spec.post.empty() && spec.kind != ConvolutionKind::Forward) return "a gradient has no post-ops";
  if (spec.bias && spec.kind == ConvolutionKind::BackwardInput) return "an input's gradient has no bias";
  return {};
}

using ConvolutionCache = codegen::SpecCache<ConvolutionSpec, Convolution>;

ConvolutionCache::Found make(const ConvolutionSpec& spec) {
  ConvolutionCache::Found out{nullptr, invalid(spec)};
  if (out.why.empty()) out.made = make_onednn_convolution(spec, &out.why);
  if (!out.made && spec.post.empty())
    log(Artifact::PerfHints, [&] { return cat("no convolution for ", spec.str(), ": ", out.why); });
  return out;
}

}  // namespace

size_t ConvolutionSpec::hash() const {
  SpecHash out;
  for (int64_t it : {static_cast<int64_t>(kind), static_cast<int64_t>(dtype), groups, static_cast<int64_t>(bias)})
    out.add(it);
  for (const StridedTensor* it : {&input, &weight, &output}) {
    out.add(it->sizes);
    out.add(it->strides);
  }
  for (const std::vector<int64_t>* it : {&stride, &padding, &dilation}) out.add(*it);
  out.add(post);
  return out.result();
}

std::string ConvolutionSpec::str() const {
  std::string out = cat("convolution ", kKinds[static_cast<size_t>(kind)], " ", ir::short_name(dtype), " input",
                        words(input), " weight", words(weight), " output", words(output), " stride ", join(stride, ","),
                        " padding ", join(padding, ","), " dilation ", join(dilation, ","), " groups ", groups);
  if (bias) append(&out, " +bias");
  for (const PostOp& it : post) append(&out, cat(" ", name(it.kind)));
  return out;
}

std::shared_ptr<const Convolution> find_convolution(const ConvolutionSpec& spec, std::string* why) {
  static ConvolutionCache& cache = *new ConvolutionCache;  // never destroyed: runs may outlive static objects
  return cache.find(spec, why, make);
}

}  // namespace graphlift::cpu
