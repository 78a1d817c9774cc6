// Owns: identity and text of specs, the ordered list, the cache.
#include "backends/cuda/matmul.h"

#include <bit>

#include "backends/codegen/spec_cache.h"
#include "backends/cuda/cublaslt.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/matmul_list.h"
#include "base/log.h"
#include "base/text.h"

namespace graphlift::cuda {
namespace {

using Cache = codegen::SpecCache<MatmulSpec, Matmul>;

std::string layout_words(const MatrixLayout& layout) {
  return cat("(", layout.batch, ",", layout.row, ",", layout.column, ")");
}

Cache::Found choose(const MatmulSpec& spec) {
  std::string why;
  if (auto made = make_lt_matmul(spec, &why)) return {std::move(made), {}};
  log(Artifact::PerfHints, [&] { return cat("torch's kernel multiplies ", spec.str(), ": ", why); });
  return {make_torch_matmul(spec), std::move(why)};
}

}  // namespace

size_t MatmulSpec::hash() const {
  codegen::SpecHash hash;
  for (const int64_t it : {static_cast<int64_t>(dtype), static_cast<int64_t>(out), static_cast<int64_t>(device.index),
                           batch, m, n, k, std::bit_cast<int64_t>(alpha), std::bit_cast<int64_t>(beta),
                           static_cast<int64_t>(bias), static_cast<int64_t>(sums), static_cast<int64_t>(activation),
                           static_cast<int64_t>(policy), static_cast<int64_t>(alignment)})
    hash.add(it);
  for (const MatrixLayout* it : {&a, &b, &c, &d, &aux})
    for (const int64_t stride : {it->batch, it->row, it->column}) hash.add(stride);
  return hash.result();
}

std::string MatmulSpec::str() const {
  static constexpr std::string_view kActivations[] = {"", " relu", " gelu", " gelu_kept", " gelu_backward"};
  static constexpr std::string_view kPolicies[] = {"", " relaxed", " whole", " torchs"};
  std::string text = cat(ir::short_name(dtype), " ");
  if (out != dtype) append(&text, cat("-> ", ir::short_name(out), " "));
  if (batch != 1) append(&text, cat(batch, "x"));
  append(&text, cat(m, "x", n, "x", k, " a", layout_words(a), " b", layout_words(b), " d", layout_words(d)));
  if (alpha != 1) append(&text, cat(" *", std::to_string(alpha)));
  if (beta != 0) append(&text, cat(" +", std::to_string(beta), "c", layout_words(c)));
  if (bias) append(&text, " +bias");
  if (sums) append(&text, " and sums");
  append(&text, kActivations[static_cast<size_t>(activation)]);
  append(&text, kPolicies[static_cast<size_t>(policy)]);
  if (alignment != 256) append(&text, cat(" aligned ", alignment));
  return text;
}

std::shared_ptr<const Matmul> find_matmul(const MatmulSpec& spec) {
  static Cache& cache = *new Cache;  // never destroyed: runs may outlive static objects
  return cache.find(spec, nullptr, choose);
}

std::shared_ptr<const Matmul> make_matmul(const std::string& name, const MatmulSpec& spec) {
  if (name == kTorchMatmul) return make_torch_matmul(spec);
  return make_lt_matmul_named(spec, name);
}

std::string matmul_refusal(const ir::Device& device) {
  const DeviceFacts& facts = device_facts(std::max<int>(0, device.index));
  return facts.refusal.empty() ? cublaslt().refusal : facts.refusal;
}

}  // namespace graphlift::cuda
