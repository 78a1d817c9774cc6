// Owns: the list, and the choice from it.
#include "backends/cpu/contraction_choice.h"

#include <utility>

#include "backends/codegen/spec_cache.h"
#include "backends/cpu/contraction_form.h"
#include "backends/cpu/contraction_gemm.h"
#include "backends/cpu/onednn.h"
#include "base/log.h"
#include "base/text.h"

namespace graphlift::cpu {
namespace {

// Up to 4 rows are bound by reading B, wherever the rest of the time goes. In blocks, more gain as well; B^T from 48 on
// has its transpose below.
bool suits_packing(const ContractionSpec& spec) {
  if (!spec.remember_b || !spec.batch.empty()) return false;
  if (spec.m <= 4) return true;
  return onednn_packs_in_blocks() && (spec.m < 48 || (spec.b.column == 1 && spec.m <= 128));
}

// One row by a matrix is bound by reading B, which oneDNN would copy first: 2 to 3 times slower.
bool is_row_by_matrix(const ContractionSpec& spec) { return spec.m == 1 && spec.batch.empty(); }

// Without AVX-512 oneDNN reads B in its place where one side is short, and rows a multiple of 2 KiB apart push each
// other out of the cache: 1.3 to 2 times slower than BLAS, which copies first.
bool rows_collide(const ContractionSpec& spec) {
  constexpr double kCopiedBelow = 0.0038;  // oneDNN's own threshold
  if (onednn_packs_in_blocks() || spec.dtype != ir::DType::float32 || !spec.batch.empty() || spec.m < 32) return false;
  const bool in_its_place = 1.0 / static_cast<double>(spec.m) + 1.0 / static_cast<double>(spec.n) >= kCopiedBelow;
  return in_its_place && spec.b.column == 1 && spec.b.row % 512 == 0;
}

// Also where oneDNN knows no such dtype.
bool suits_gemm(const ContractionSpec& spec) {
  return is_row_by_matrix(spec) || spec.dtype == ir::DType::float64 || rows_collide(spec);
}

// As its transpose. A linear layer's forward with few rows: B is read once, and copying it first costs 10 to 25% (below
// 48 rows the transpose has too few columns, above 128 the copy is lost in the product). And fewer than 16 columns,
// which fill no vector.
bool suits_swapping(const ContractionSpec& spec) {
  const bool transposed_b = spec.b.row == 1 && spec.b.column > 1;
  const bool few_rows = transposed_b && spec.m >= 48 && spec.m <= 128 && spec.n >= 8 * spec.m && spec.k >= 512;
  const bool few_columns = spec.n < 16 && spec.m >= 32 && spec.k >= 64;
  return few_rows || few_columns;
}

// What BLAS can't finish with post-ops is faster as that product and a kernel behind it, where BLAS is.
bool suits_onednn(const ContractionSpec& spec) {
  return spec.dtype != ir::DType::float32 || !(is_row_by_matrix(spec) || rows_collide(spec));
}

std::unique_ptr<const Contraction> make_packed(const ContractionSpec& spec, std::string* why);

constexpr ContractionImplementation kList[] = {
    {"onednn packed", suits_packing, make_packed},
    {"gemm", suits_gemm, make_gemm},
    {"onednn swapped", suits_swapping, make_onednn_swapped},
    {"onednn", suits_onednn, make_onednn_contraction},
};

// While B has no copy, what would be chosen without.
std::unique_ptr<const Contraction> make_packed(const ContractionSpec& spec, std::string* why) {
  ContractionSpec forgetful = spec;
  forgetful.remember_b = false;
  std::unique_ptr<const Contraction> plain;
  for (const ContractionImplementation& row : kList)
    if (!plain && row.make != make_packed && row.worthwhile(forgetful)) plain = row.make(forgetful, why);
  if (!plain) plain = make_onednn_contraction(forgetful, why);
  if (!plain) return nullptr;
  return make_onednn_packed(spec, std::move(plain), why);
}

class Nothing final : public Contraction {
 public:
  void run(const ContractionOperands&) const override {}
  std::string implementation() const override { return "nothing to do"; }
};

// C^T = B^T A^T.
class Transposed final : public Contraction {
 public:
  explicit Transposed(std::unique_ptr<const Contraction> inner) : inner_(std::move(inner)) {}
  void run(const ContractionOperands& operands) const override {
    ContractionOperands swapped = operands;
    std::swap(swapped.a, swapped.b);
    inner_->run(swapped);
  }
  std::string implementation() const override { return cat(inner_->implementation(), " of the transpose"); }

 private:
  const std::unique_ptr<const Contraction> inner_;
};

using Rows = std::span<const ContractionImplementation>;
using ContractionCache = codegen::SpecCache<ContractionSpec, Contraction>;

// The first of `rows` that makes it; `only_worthwhile`: of those ahead for this spec.
ContractionCache::Found first_of(Rows rows, bool only_worthwhile, const ContractionSpec& given) {
  ContractionCache::Found out{nullptr, invalid(given)};
  if (!out.why.empty()) return out;
  ContractionSpec spec = canonical(given);
  if (is_empty(spec)) return {std::make_shared<Nothing>(), {}};
  const bool transpose = should_transpose(spec);
  if (transpose) spec = transposed(std::move(spec));
  std::vector<std::string> reasons;
  for (const ContractionImplementation& row : rows) {
    if (only_worthwhile && !row.worthwhile(spec)) continue;
    std::string why;
    std::unique_ptr<const Contraction> made = row.make(spec, &why);
    if (made && transpose) made = std::make_unique<Transposed>(std::move(made));
    if (made) return {std::move(made), {}};
    reasons.push_back(cat(row.name, ": ", why));
  }
  out.why = reasons.empty() ? "nothing here is ahead of torch" : join(reasons, "; ");
  return out;
}

ContractionCache::Found choose(const ContractionSpec& spec) {
  ContractionCache::Found out = first_of(kList, true, spec);
  if (!out.made && spec.post.empty())
    log(Artifact::PerfHints, [&] { return cat("no contraction for ", spec.str(), ": ", out.why); });
  return out;
}

}  // namespace

std::span<const ContractionImplementation> contraction_list() { return kList; }

std::vector<std::string_view> contraction_implementations() {
  std::vector<std::string_view> out;
  for (const ContractionImplementation& row : kList) out.push_back(row.name);
  return out;
}

std::shared_ptr<const Contraction> find_contraction(const ContractionSpec& spec, std::string* why) {
  static ContractionCache& cache = *new ContractionCache;  // never destroyed: runs may outlive static objects
  return cache.find(spec, why, choose);
}

std::shared_ptr<const Contraction> make_contraction(std::string_view implementation, const ContractionSpec& spec,
                                                    std::string* why) {
  ContractionCache::Found found{nullptr, cat("no implementation is called ", implementation)};
  for (const ContractionImplementation& row : kList)
    if (row.name == implementation) found = first_of(Rows(&row, 1), false, spec);
  if (why) *why = found.why;
  return found.made;
}

}  // namespace graphlift::cpu
