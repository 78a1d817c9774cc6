// Owns: BLAS's gemm as torch's library exports it.
#include "backends/cpu/contraction_gemm.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <limits>

namespace graphlift::cpu {
namespace {

template <typename Number>
using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const Number*, const Number*,
                      const int*, const Number*, const int*, const Number*, Number*, const int*);

// Null where torch's library has no such symbol. It stays loaded as long as torch.
void* torch_symbol(const char* name) {
  Dl_info file{};
  if (dladdr(reinterpret_cast<void*>(&at::get_num_threads), &file) == 0) return nullptr;
  void* torch = dlopen(file.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!torch) return nullptr;
  void* out = dlsym(torch, name);
  dlclose(torch);
  return out;
}

// A matrix stored by rows is its transpose to BLAS.
struct BlasMatrix {
  char transposed = 'N';
  int pitch = 0;
};

bool as_blas(const MatrixLayout& layout, int64_t rows, int64_t columns, BlasMatrix* out) {
  const bool by_rows = layout.column == 1 && layout.row >= columns;
  const bool by_columns = layout.row == 1 && layout.column >= rows;
  const int64_t pitch = by_rows ? layout.row : layout.column;
  if (!(by_rows || by_columns) || pitch > std::numeric_limits<int>::max()) return false;
  *out = {by_rows ? 'N' : 'T', static_cast<int>(std::max<int64_t>(pitch, 1))};
  return true;
}

// C^T = B^T A^T in BLAS's order of columns.
template <typename Number>
class GemmContraction final : public Contraction {
 public:
  GemmContraction(const ContractionSpec& spec, Gemm<Number> gemm, BlasMatrix a, BlasMatrix b, BlasMatrix c, float beta)
      : spec_(spec), gemm_(gemm), a_(a), b_(b), c_(c), beta_(beta) {}

  void run(const ContractionOperands& operands) const override {
    const auto* a = static_cast<const Number*>(operands.a);
    const auto* b = static_cast<const Number*>(operands.b);
    auto* c = static_cast<Number*>(operands.c);
    run_batch(0, a, b, c, static_cast<const Number*>(operands.bias));
  }
  std::string implementation() const override { return "torch gemm"; }

 private:
  void run_batch(size_t dim, const Number* a, const Number* b, Number* c, const Number* bias) const {
    if (dim == spec_.batch.size()) return run_one(a, b, c, bias);
    for (int64_t i = 0; i < spec_.batch[dim]; ++i)
      run_batch(dim + 1, a + i * spec_.a.batch[dim], b + i * spec_.b.batch[dim], c + i * spec_.c.batch[dim], bias);
  }
  // The bias is what C holds when the product is accumulated onto it.
  void run_one(const Number* a, const Number* b, Number* c, const Number* bias) const {
    if (bias)
      for (int64_t row = 0; row < spec_.m; ++row) std::copy_n(bias, spec_.n, c + row * spec_.c.row);
    const int m = static_cast<int>(spec_.m), n = static_cast<int>(spec_.n), k = static_cast<int>(spec_.k);
    const Number one = 1, beta = static_cast<Number>(beta_);
    gemm_(&b_.transposed, &a_.transposed, &n, &m, &k, &one, b, &b_.pitch, a, &a_.pitch, &beta, c, &c_.pitch);
  }

  const ContractionSpec spec_;
  const Gemm<Number> gemm_;
  const BlasMatrix a_, b_, c_;
  const float beta_;
};

template <typename Number>
std::unique_ptr<const Contraction> make(const ContractionSpec& spec, const char* symbol, std::string* why) {
  const auto gemm = reinterpret_cast<Gemm<Number>>(torch_symbol(symbol));
  BlasMatrix a, b, c;
  const char* fault = nullptr;
  const int64_t most = std::numeric_limits<int>::max();
  if (!gemm)
    fault = "torch's library exports no BLAS";
  else if (spec.m > most || spec.n > most || spec.k > most)
    fault = "a size is too large for BLAS";
  else if (!as_blas(spec.a, spec.m, spec.k, &a) || !as_blas(spec.b, spec.k, spec.n, &b) ||
           !as_blas(spec.c, spec.m, spec.n, &c) || c.transposed != 'N')
    fault = "rows and columns of an operand both have gaps";
  if (fault) {
    if (why) *why = fault;
    return nullptr;
  }
  const float beta = spec.bias != ir::DType::undefined ? 1 : spec.post.empty() ? 0 : spec.post.front().alpha;
  return std::make_unique<GemmContraction<Number>>(spec, gemm, a, b, c, beta);
}

struct GemmRow {
  ir::DType dtype;
  const char* symbol;
  std::unique_ptr<const Contraction> (*make)(const ContractionSpec&, const char*, std::string*);
};
constexpr std::array kGemms = {
    GemmRow{ir::DType::float32, "sgemm_", make<float>},
    GemmRow{ir::DType::float64, "dgemm_", make<double>},
};

}  // namespace

std::unique_ptr<const Contraction> make_gemm(const ContractionSpec& spec, std::string* why) {
  const bool only_accumulates = spec.post.size() == 1 && spec.post.front().kind == PostOpKind::Accumulate;
  const bool has_bias = spec.bias != ir::DType::undefined;
  if (!(spec.post.empty() || (only_accumulates && !has_bias)) || (has_bias && spec.bias != spec.out_dtype)) {
    if (why) *why = "BLAS has no post-ops";
    return nullptr;
  }
  for (const GemmRow& row : kGemms)
    if (row.dtype == spec.dtype && row.dtype == spec.out_dtype) return row.make(spec, row.symbol, why);
  if (why) *why = "BLAS has no product of this dtype";
  return nullptr;
}

}  // namespace graphlift::cpu
