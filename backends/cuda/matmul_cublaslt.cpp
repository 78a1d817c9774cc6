// Owns: products by cuBLASLt: its descriptors for a spec, made once, and its algorithm. The library counts rows and
// columns the other way round: D as it lies in memory is its D of n rows, and is B^T A^T there.
#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>

#include "backends/cuda/cublaslt.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/matmul_list.h"
#include "base/text.h"

namespace graphlift::cuda {
namespace {

std::atomic<uint64_t> runs = 0;

// --- the library's numbers for a spec --------------------------------------------------------------------------------

struct DtypeRow {
  ir::DType dtype;
  int type, compute, relaxed, scale;
};
constexpr DtypeRow kDtypes[] = {
    {ir::DType::float32, lt::kFloat32, lt::kCompute32, lt::kComputeTf32, lt::kFloat32},
    {ir::DType::float64, lt::kFloat64, lt::kCompute64, lt::kCompute64, lt::kFloat64},
    {ir::DType::float16, lt::kFloat16, lt::kCompute32, lt::kCompute32, lt::kFloat32},
    {ir::DType::bfloat16, lt::kBfloat16, lt::kCompute32, lt::kCompute32, lt::kFloat32},
};

const DtypeRow* find_row(ir::DType dtype) {
  for (const DtypeRow& row : kDtypes)
    if (row.dtype == dtype) return &row;
  return nullptr;
}

// A matrix as it lies in memory, by its lines: rows where columns are neighbours, else columns.
struct Stored {
  bool by_rows = true;
  int64_t pitch = 0;  // from line to line
};

bool stored(const MatrixLayout& layout, int64_t rows, int64_t columns, Stored* out) {
  if ((columns == 1 || layout.column == 1) && (rows == 1 || layout.row >= columns)) {
    *out = {true, rows == 1 ? columns : layout.row};
    return true;
  }
  if ((rows == 1 || layout.row == 1) && (columns == 1 || layout.column >= rows)) {
    *out = {false, columns == 1 ? rows : layout.column};
    return true;
  }
  return false;
}

// D that lies by columns, as the product D^T = B^T A^T.
MatmulSpec transposed(MatmulSpec spec) {
  std::swap(spec.a, spec.b);
  std::swap(spec.m, spec.n);
  for (MatrixLayout* it : {&spec.a, &spec.b, &spec.c, &spec.d, &spec.aux}) std::swap(it->row, it->column);
  return spec;
}

struct Form {
  Stored a, b, c, d, aux;
};

// What the library can't be told of a spec; empty: nothing.
std::string misfit(const MatmulSpec& spec, Form* form) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool widens = spec.out == ir::DType::float32 && ir::bytes(spec.dtype) == 2 && !spec.bias && !spec.has_aux();
  if (!find_row(spec.dtype) || (spec.out != spec.dtype && !widens)) return "cuBLASLt has no product of this dtype";
  if (spec.policy == Policy::Torchs) return "sums in 16 bits were asked for";
  if (std::min({spec.batch, spec.m, spec.n, spec.k}) <= 0) return "a size is 0";
  if (std::max({spec.batch, spec.m, spec.n, spec.k}) > kMost) return "a size has more than 31 bits";
  if (!stored(spec.a, spec.m, spec.k, &form->a) || !stored(spec.b, spec.k, spec.n, &form->b))
    return "an operand has gaps between its rows and between its columns, or repeats them";
  if (spec.sums &&
      (spec.bias || spec.beta != 0 || spec.alpha != 1 || spec.batch > 1 || spec.activation != Activation::None))
    return "sums of rows beside more than a product";
  if (!stored(spec.d, spec.m, spec.n, &form->d) || !form->d.by_rows) return "the result lies by columns";
  if (spec.beta != 0 && (!stored(spec.c, spec.m, spec.n, &form->c) || !form->c.by_rows))
    return "what is added lies otherwise than the result";
  if (!spec.has_aux()) return "";
  if (!stored(spec.aux, spec.m, spec.n, &form->aux) || !form->aux.by_rows || form->aux.pitch % 8 != 0 ||
      spec.aux.batch % 8 != 0)
    return "an activation's input lies otherwise than the library has it";
  return spec.bias && spec.activation == Activation::GeluBackward ? "a bias before an activation's gradient" : "";
}

uint32_t epilogue(const MatmulSpec& spec) {
  uint32_t bits = spec.bias ? lt::kBias : spec.sums ? lt::kSumsOfB : 0;
  static constexpr uint32_t kActivations[] = {0, lt::kRelu, lt::kGelu, lt::kGeluKept, lt::kGeluBackward};
  bits |= kActivations[static_cast<size_t>(spec.activation)];
  return bits ? bits : lt::kEpilogueNone;
}

// As torch sizes it: what the user asked for, or else as much as cuBLAS gets.
uint64_t most_workspace(int architecture) {
  static const char* const asked = std::getenv("CUBLASLT_WORKSPACE_SIZE");  // KiB
  if (asked && std::atoll(asked) > 0) return static_cast<uint64_t>(std::atoll(asked)) << 10;
  return architecture == 90 ? uint64_t{32} << 20 : (uint64_t{8} << 20) + (uint64_t{128} << 10);
}

// --- the library's objects -------------------------------------------------------------------------------------------

bool failed(int status, const char* what, std::string* why) {
  if (status != 0) *why = cat("cuBLASLt refuses ", what, " (status ", status, ")");
  return status != 0;
}

// One per GPU and process; never destroyed. Null: `why`.
void* handle_of(c10::Device device, std::string* why) {
  static std::mutex mutex;
  static auto& known = *new std::map<int, void*>;
  const std::lock_guard lock(mutex);
  void*& handle = known[device.index()];
  if (!handle && failed(cublaslt().cublasLtCreate(&handle), "a handle", why)) handle = nullptr;
  return handle;
}

using Destroy = int (*CublasLt::*)(void*);
template <Destroy destroy>
struct Destroyer {
  void operator()(void* object) const { (cublaslt().*destroy)(object); }
};
using OperationDesc = std::unique_ptr<void, Destroyer<&CublasLt::cublasLtMatmulDescDestroy>>;
using Layout = std::unique_ptr<void, Destroyer<&CublasLt::cublasLtMatrixLayoutDestroy>>;
using Preference = std::unique_ptr<void, Destroyer<&CublasLt::cublasLtMatmulPreferenceDestroy>>;

template <class Value>
int set(const OperationDesc& operation, int attribute, Value value) {
  return cublaslt().cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof value);
}
template <class Value>
int set(const Layout& layout, int attribute, Value value) {
  return cublaslt().cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, &value, sizeof value);
}
template <class Value>
int set(const Preference& preference, int attribute, Value value) {
  return cublaslt().cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value);
}

// A spec's descriptors. The library's A is our B, and its B our A.
struct Plan {
  MatmulSpec spec;
  Form form;
  bool swapped = false;  // A and B have changed places
  void* handle = nullptr;
  OperationDesc operation;
  Layout a, b, c, d;

  bool make(const MatmulSpec& given, std::string* why) {
    spec = given;
    swapped = spec.d.column != 1 && spec.d.row == 1 && !spec.bias && !spec.sums;
    if (swapped) spec = transposed(spec);
    *why = misfit(spec, &form);
    if (!why->empty()) return false;
    const c10::Device device = torch_layer::to_torch(spec.device);
    if (device.is_cuda()) at::globalContext().lazyInitDevice(device.type());
    handle = handle_of(device, why);
    return handle && make_operation(why) && make_layout(form.b, spec.dtype, spec.k, spec.n, spec.b.batch, &a, why) &&
           make_layout(form.a, spec.dtype, spec.m, spec.k, spec.a.batch, &b, why) &&
           make_layout(form.d, spec.out, spec.m, spec.n, spec.d.batch, &d, why) &&
           (spec.beta != 0 ? make_layout(form.c, spec.out, spec.m, spec.n, spec.c.batch, &c, why)
                           : make_layout(form.d, spec.out, spec.m, spec.n, spec.d.batch, &c, why));
  }

  bool make_operation(std::string* why) {
    const DtypeRow& row = *find_row(spec.dtype);
    void* made = nullptr;
    const int compute = spec.policy == Policy::Relaxed ? row.relaxed : row.compute;
    if (failed(cublaslt().cublasLtMatmulDescCreate(&made, compute, row.scale), "an operation", why)) return false;
    operation.reset(made);
    constexpr int32_t kPlain = 0, kTransposed = 1;
    int status = set(operation, lt::kTransposeA, form.b.by_rows ? kPlain : kTransposed);
    status |= set(operation, lt::kTransposeB, form.a.by_rows ? kPlain : kTransposed);
    status |= set(operation, lt::kEpilogue, epilogue(spec));
    // Addresses are not read now: they tell how the real ones are aligned.
    auto* const aligned = reinterpret_cast<void*>(static_cast<uintptr_t>(spec.alignment));
    if (spec.bias || spec.sums) status |= set(operation, lt::kBiasPointer, aligned);
    if (spec.has_aux()) {
      status |= set(operation, lt::kAuxPointer, aligned);
      status |= set(operation, lt::kAuxPitch, form.aux.pitch);
      if (spec.batch > 1) status |= set(operation, lt::kAuxBatchStride, spec.aux.batch);
    }
    return !failed(status, "an epilogue", why);
  }

  bool make_layout(const Stored& stored, ir::DType dtype, int64_t rows, int64_t columns, int64_t batch, Layout* to,
                   std::string* why) {
    if (!stored.by_rows) std::swap(rows, columns);
    void* made = nullptr;
    if (failed(cublaslt().cublasLtMatrixLayoutCreate(&made, find_row(dtype)->type, static_cast<uint64_t>(columns),
                                                     static_cast<uint64_t>(rows), stored.pitch),
               "a layout", why))
      return false;
    to->reset(made);
    if (spec.batch == 1) return true;
    const int status = set(*to, lt::kBatchCount, static_cast<int32_t>(spec.batch)) | set(*to, lt::kBatchStride, batch);
    return !failed(status, "a batch", why);
  }

  std::vector<LtHeuristic> heuristics(int most, std::string* why) const {
    std::vector<LtHeuristic> found(static_cast<size_t>(most));
    void* made = nullptr;
    if (failed(cublaslt().cublasLtMatmulPreferenceCreate(&made), "preferences", why)) return {};
    const Preference preference(made);
    const int architecture = device_facts(std::max<int>(0, spec.device.index)).architecture;
    int status = set(preference, lt::kMostWorkspace, most_workspace(architecture));
    for (const int which : {lt::kAlignmentA, lt::kAlignmentB, lt::kAlignmentC, lt::kAlignmentD})
      status |= set(preference, which, static_cast<uint32_t>(spec.alignment));
    if (spec.policy != Policy::Relaxed && ir::bytes(spec.dtype) == 2)
      status |= set(preference, lt::kReductionSchemes,
                    spec.policy == Policy::Whole ? lt::kNoReduction : lt::kReductionInComputeType);
    if (failed(status, "preferences", why)) return {};
    int count = 0;
    status = cublaslt().cublasLtMatmulAlgoGetHeuristic(handle, operation.get(), a.get(), b.get(), c.get(), d.get(),
                                                       preference.get(), most, found.data(), &count);
    if (failed(status, "the product", why)) return {};
    found.resize(static_cast<size_t>(count));
    std::erase_if(found, [](const LtHeuristic& it) { return it.status != 0; });
    if (found.empty()) *why = "cuBLASLt has no algorithm for it";
    return found;
  }
};

constexpr std::string_view kPrefix = "cublaslt ";

class LtMatmul final : public Matmul {
 public:
  LtMatmul(Plan plan, const LtHeuristic& how)
      : plan_(std::move(plan)),
        algorithm_(how.algorithm),
        workspace_(how.workspace),
        place_(torch_layer::to_torch(plan_.spec.device)),
        alpha32_(static_cast<float>(plan_.spec.alpha)),
        beta32_(static_cast<float>(plan_.spec.beta)) {
    has_addresses_ = plan_.spec.bias || plan_.spec.sums || plan_.spec.has_aux();
  }

  void run(const MatmulOperands& given) const override {
    MatmulOperands operands = given;
    if (plan_.swapped) std::swap(operands.a, operands.b);
    at::DataPtr workspace;
    if (workspace_ > 0) workspace = place_.allocator->allocate(workspace_);
    const bool wide = plan_.spec.dtype == ir::DType::float64;
    const void* alpha = wide ? static_cast<const void*>(&plan_.spec.alpha) : &alpha32_;
    const void* beta = wide ? static_cast<const void*>(&plan_.spec.beta) : &beta32_;
    std::unique_lock lock(mutex_, std::defer_lock);
    if (has_addresses_) {
      lock.lock();
      put_addresses(operands);
    }
    const int status =
        cublaslt().cublasLtMatmul(plan_.handle, plan_.operation.get(), alpha, operands.b, plan_.a.get(), operands.a,
                                  plan_.b.get(), beta, plan_.spec.beta != 0 ? operands.c : operands.d, plan_.c.get(),
                                  operands.d, plan_.d.get(), &algorithm_, workspace.get(), workspace_, place_.stream());
    TORCH_CHECK(status == 0, "CUDA error: cuBLASLt failed with status ", status, " in a product of graphlift");
    runs.fetch_add(1, std::memory_order_relaxed);
  }

  // The algorithm's bytes.
  std::string name() const override {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out(kPrefix);
    for (const uint64_t word : algorithm_.data) {
      for (int shift = 60; shift >= 0; shift -= 4) out.push_back(kDigits[word >> shift & 15]);
      out.push_back(' ');
    }
    return out;
  }

 private:
  // The descriptor is shared by all calls: held by the lock until the library has read it.
  void put_addresses(const MatmulOperands& operands) const {
    int status = 0;
    const void* bias = plan_.spec.sums ? operands.sums : operands.bias;
    if (bias && bias_ != bias) status |= set(plan_.operation, lt::kBiasPointer, bias);
    if (plan_.spec.has_aux() && aux_ != operands.aux) status |= set(plan_.operation, lt::kAuxPointer, operands.aux);
    TORCH_CHECK(status == 0, "CUDA error: cuBLASLt refused an address in a product of graphlift");
    bias_ = bias;
    aux_ = operands.aux;
  }

  const Plan plan_;
  const LtAlgorithm algorithm_;
  const size_t workspace_;
  const Place place_;
  const float alpha32_, beta32_;
  bool has_addresses_ = false;
  mutable std::mutex mutex_;  // of what follows, and of the operation's addresses
  mutable const void* bias_ = nullptr;
  mutable const void* aux_ = nullptr;
};

bool usable(const MatmulSpec& spec, std::string* why) {
  *why = matmul_refusal(spec.device);
  return why->empty();
}

}  // namespace

uint64_t library_products() { return runs; }

std::vector<std::unique_ptr<const Matmul>> make_lt_matmuls(const MatmulSpec& spec, int most, std::string* why) {
  std::vector<std::unique_ptr<const Matmul>> made;
  Plan first;
  if (!usable(spec, why)) return made;
  const c10::DeviceGuard guard(torch_layer::to_torch(spec.device));
  if (!first.make(spec, why)) return made;
  for (const LtHeuristic& how : first.heuristics(most, why)) {
    Plan plan;
    if (plan.make(spec, why)) made.push_back(std::make_unique<LtMatmul>(std::move(plan), how));
  }
  return made;
}

std::unique_ptr<const Matmul> make_lt_matmul(const MatmulSpec& spec, std::string* why) {
  auto made = make_lt_matmuls(spec, 1, why);
  return made.empty() ? nullptr : std::move(made.front());
}

std::unique_ptr<const Matmul> make_lt_matmul_named(const MatmulSpec& spec, const std::string& name) {
  std::string why;
  LtHeuristic how{};
  if (!name.starts_with(kPrefix) || !usable(spec, &why)) return nullptr;
  const char* at = name.c_str() + kPrefix.size();
  for (uint64_t& word : how.algorithm.data) {
    char* end = nullptr;
    word = std::strtoull(at, &end, 16);
    if (end != at + 16) return nullptr;
    at = end + 1;
  }
  const c10::DeviceGuard guard(torch_layer::to_torch(spec.device));
  Plan plan;
  if (!plan.make(spec, &why)) return nullptr;
  LtHeuristic checked{};
  const int status = cublaslt().cublasLtMatmulAlgoCheck(plan.handle, plan.operation.get(), plan.a.get(), plan.b.get(),
                                                        plan.c.get(), plan.d.get(), &how.algorithm, &checked);
  how.workspace = checked.workspace;
  const int architecture = device_facts(std::max<int>(0, spec.device.index)).architecture;
  if (status != 0 || how.workspace > most_workspace(architecture)) return nullptr;
  return std::make_unique<LtMatmul>(std::move(plan), how);
}

}  // namespace graphlift::cuda
