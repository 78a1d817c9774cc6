// Owns: the list, and the process-wide cache of contractions.
#include "backends/cpu/contraction_choice.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "backends/cpu/contraction_form.h"
#include "backends/cpu/contraction_gemm.h"
#include "backends/cpu/onednn.h"
#include "base/log.h"
#include "base/text.h"

namespace graphlift::cpu {
namespace {

bool always(const ContractionSpec&) { return true; }

bool may_remember(const ContractionSpec& spec) { return spec.remember_b; }

// A linear layer's forward with few rows: all of B is read once, and copying it costs 10 to 40% of the time. Below 16
// rows the kernel reads B directly; above 128 the copy is lost in the product, and C^T grows.
bool few_rows_by_transposed_b(const ContractionSpec& spec) {
  const bool transposed_b = spec.b.row == 1 && spec.b.column > 1;
  return transposed_b && spec.m >= 16 && spec.m <= 128 && spec.n >= 8 * spec.m && spec.k >= 512;
}

constexpr ContractionImplementation kList[] = {
    {"onednn packed", may_remember, make_onednn_packed},
    {"onednn swapped", few_rows_by_transposed_b, make_onednn_swapped},
    {"onednn", always, make_onednn_contraction},
    {"gemm", always, make_gemm},
};

class Nothing final : public Contraction {
 public:
  void run(const ContractionOperands&) const override {}
  std::string implementation() const override { return "nothing to do"; }
};

struct Found {
  std::shared_ptr<const Contraction> contraction;
  std::string why;
};

Found choose(const ContractionSpec& given) {
  Found out{nullptr, invalid(given)};
  if (!out.why.empty()) return out;
  const ContractionSpec spec = canonical(given);
  if (is_empty(spec)) return {std::make_shared<Nothing>(), {}};
  std::vector<std::string> reasons;
  for (const ContractionImplementation& row : kList) {
    if (!row.worthwhile(spec)) continue;
    std::string why;
    if ((out.contraction = row.make(spec, &why))) return out;
    reasons.push_back(cat(row.name, ": ", why));
  }
  out.why = join(reasons, "; ");
  log(Artifact::PerfHints, [&] { return cat("no contraction for ", given.str(), ": ", out.why); });
  return out;
}

struct SpecHash {
  size_t operator()(const ContractionSpec& spec) const { return spec.hash(); }
};

// Those that a program uses stay alive through it; the rest go when there are too many.
constexpr size_t kMostKept = 4096;

struct Cache {
  std::shared_mutex mutex;
  std::unordered_map<ContractionSpec, Found, SpecHash> known;
};

// Never destroyed: runs may outlive static objects.
Cache& cache() {
  static Cache& it = *new Cache;
  return it;
}

}  // namespace

std::span<const ContractionImplementation> contraction_list() { return kList; }

std::vector<std::string_view> contraction_implementations() {
  std::vector<std::string_view> out;
  for (const ContractionImplementation& row : kList) out.push_back(row.name);
  return out;
}

std::shared_ptr<const Contraction> find_contraction(const ContractionSpec& spec, std::string* why) {
  Cache& shared = cache();
  {
    const std::shared_lock lock(shared.mutex);
    const auto it = shared.known.find(spec);
    if (it != shared.known.end()) {
      if (why) *why = it->second.why;
      return it->second.contraction;
    }
  }
  Found found = choose(spec);  // without the lock: two threads may make the same, one is kept
  const std::unique_lock lock(shared.mutex);
  if (shared.known.size() >= kMostKept) shared.known.clear();
  const auto& [it, added] = shared.known.try_emplace(spec, std::move(found));
  if (why) *why = it->second.why;
  return it->second.contraction;
}

std::shared_ptr<const Contraction> make_contraction(std::string_view implementation, const ContractionSpec& given,
                                                    std::string* why) {
  std::string fault = invalid(given);
  const ContractionSpec spec = fault.empty() ? canonical(given) : given;
  if (fault.empty() && is_empty(spec)) return std::make_shared<Nothing>();
  if (fault.empty()) {
    fault = cat("no implementation is called ", implementation);
    for (const ContractionImplementation& row : kList)
      if (row.name == implementation) return row.make(spec, why);
  }
  if (why) *why = fault;
  return nullptr;
}

}  // namespace graphlift::cpu
