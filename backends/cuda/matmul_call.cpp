// Owns: see matmul_call.h.
#include "backends/cuda/matmul_call.h"

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "backends/cuda/epilogue.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/matmul.h"
#include "backends/cuda/matmul_list.h"
#include "backends/cuda/matmul_tuning.h"
#include "base/error.h"
#include "ops/layout.h"

namespace graphlift::cuda {
namespace {

using codegen::NativeOperation;
using ir::TensorType;

// Operands by their place among the tensors of the call; -1: the operator has none.
struct Product {
  std::string_view op;
  int self, a, b;
  int beta, alpha;  // places among the arguments
};

constexpr Product kProducts[] = {
    {"aten::mm.default", -1, 0, 1, -1, -1},
    {"aten::bmm.default", -1, 0, 1, -1, -1},
    {"aten::addmm.default", 0, 1, 2, 3, 4},
    {"aten::baddbmm.default", 0, 1, 2, 3, 4},
};

const Product* find_product(const ir::Node& node) {
  for (const Product& product : kProducts)
    if (node.op.str() == product.op) return &product;
  return nullptr;
}

std::optional<double> number(const ir::Node& node, int place) {
  const ir::Arg& arg = node.args[static_cast<size_t>(place)];
  if (const auto* real = std::get_if<double>(&arg)) return *real;
  if (const ir::Sym* whole = arg.sym(); whole && whole->is_constant()) return static_cast<double>(whole->constant());
  return std::nullopt;
}

// What the call does itself; nullopt: more than a spec can say.
std::optional<Finishing> own_finishing(const ir::Node& node, const Product& product) {
  Finishing made;
  if (product.self < 0) return made;
  const auto beta = number(node, product.beta), alpha = number(node, product.alpha);
  if (!alpha || !beta || *alpha == 0) return std::nullopt;
  made.alpha = *alpha;
  if (*beta == 0) return made;
  const TensorType &self = ir::type_of(*node.args[0].value()), &result = *node.outputs[0];
  const bool row = self.rank() > 0 && self.sizes.back().same(result.sizes.back()) && self.strides.back().same(1) &&
                   ops::product(self.sizes).same(self.sizes.back());
  if (row && *beta == 1 && *alpha == 1) {
    made.bias = product.self;
  } else if (ops::same(self.sizes, result.sizes)) {
    made.added = product.self;
    made.beta = *beta;
  } else {
    return std::nullopt;
  }
  return made;
}

MatrixLayout layout_of(const TensorType& type, std::span<const int64_t> symbols) {
  const size_t rank = type.sizes.size();
  MatrixLayout layout;
  if (rank == 3) layout.batch = type.strides[0].eval(symbols);
  layout.row = type.strides[rank - 2].eval(symbols);
  layout.column = type.strides[rank - 1].eval(symbols);
  return layout;
}

// A batch over which B is the same is more rows of A.
void fold_batch(MatmulSpec* spec) {
  auto folds = [&](const MatrixLayout& it) { return it.batch == it.row * spec->m; };
  if (spec->batch == 1 || spec->b.batch != 0 || !folds(spec->a) || !folds(spec->d)) return;
  if (spec->beta != 0 && !folds(spec->c)) return;
  if (spec->has_aux() && !folds(spec->aux)) return;
  spec->m *= spec->batch;
  spec->batch = 1;
}

// Strides that nothing depends on are the same in all specs.
void normalize(MatmulSpec* spec) {
  fold_batch(spec);
  if (spec->beta == 0) spec->c = {};
  if (!spec->has_aux()) spec->aux = {};
  if (spec->batch == 1)
    for (MatrixLayout* it : {&spec->a, &spec->b, &spec->c, &spec->d, &spec->aux}) it->batch = 0;
}

// A product of a graph: what its spec depends on, apart from its node.
struct Operation {
  Product product;
  Finishing how;
  bool sums;
  std::vector<TensorType> operands;
  TensorType result;

  const TensorType& operand(int i) const { return operands[static_cast<size_t>(i)]; }

  bool is_static() const {
    auto constant = [](const TensorType& type) { return ir::is_constant(type); };
    return std::all_of(operands.begin(), operands.end(), constant) && ir::is_constant(result);
  }

  MatmulSpec spec(std::span<const int64_t> symbols) const {
    const size_t rank = result.sizes.size();
    MatmulSpec spec;
    spec.dtype = result.dtype;
    spec.out = how.widens ? ir::DType::float32 : result.dtype;
    spec.device = result.device;
    if (rank == 3) spec.batch = result.sizes[0].eval(symbols);
    spec.m = result.sizes[rank - 2].eval(symbols);
    spec.n = result.sizes[rank - 1].eval(symbols);
    spec.k = operand(product.a).sizes.back().eval(symbols);
    spec.a = layout_of(operand(product.a), symbols);
    spec.b = layout_of(operand(product.b), symbols);
    spec.d = layout_of(result, symbols);
    if (how.added >= 0) spec.c = how.like_result ? spec.d : layout_of(operand(how.added), symbols);
    spec.aux = spec.d;
    spec.alpha = how.alpha;
    spec.beta = how.beta;
    spec.bias = how.bias >= 0;
    spec.sums = sums;
    spec.activation = how.activation;
    normalize(&spec);
    return spec;
  }
};

std::optional<Operation> operation_of(const NativeOperation& from) {
  const Product& product = *find_product(*from.node);
  const auto own = own_finishing(*from.node, product);
  const auto how = own ? finished(from, *own) : std::nullopt;
  if (!how) return std::nullopt;
  return Operation{product, *how, from.beside != nullptr, from.operands, *from.node->outputs[0]};
}

Policy policy_for(at::CuBLASReductionOption sums) {
  using Sums = at::CuBLASReductionOption;
  if (sums == Sums::AllowReducedPrecisionWithSplitK) return Policy::Relaxed;
  return sums == Sums::DisallowReducedPrecisionAllowSplitK ? Policy::Exact : Policy::Whole;
}

// As torch's own products read it at each call.
Policy policy_for(ir::DType dtype) {
  const at::Context& context = at::globalContext();
  switch (dtype) {
    case ir::DType::float32:
      return context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) == at::Float32Precision::TF32
                 ? Policy::Relaxed
                 : Policy::Exact;
    case ir::DType::bfloat16:
      return policy_for(context.allowBF16ReductionCuBLAS());
    case ir::DType::float16:
      if (context.allowFP16AccumulationCuBLAS()) return Policy::Torchs;
      return policy_for(context.allowFP16ReductionCuBLAS());
    default:
      return Policy::Exact;
  }
}

constexpr size_t kPolicies = 4;
constexpr std::array kAlignments = {256, 16, 1};

class MatmulCall final : public reference::NativeCall {
 public:
  MatmulCall(Operation operation, const NativeOperation& from, Tuning tuning)
      : operation_(std::move(operation)),
        place_(torch_layer::to_torch(operation_.result.device)),
        result_(*from.last().outputs[0]),
        bytes_(ir::bytes(operation_.result.dtype)),
        is_static_(operation_.is_static()) {
    if (from.kept) kept_.emplace(*from.kept->outputs[0]);
    if (from.beside) sums_.emplace(*from.beside->outputs[0]);
    if (!is_static_) return;
    known_ = operation_.spec({});
    MatmulSpec spec = known_;
    spec.policy = policy_for(spec.dtype);
    set_known(spec.policy, 0, tuning == Tuning::None ? find_matmul(spec) : tuned_matmul(spec, tuning));
  }

  bool fills(size_t) const override { return true; }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    const c10::DeviceGuard guard(place_.device);
    if (!outputs[0].defined()) outputs[0] = place_.allocate(result_, symbols);
    MatmulOperands operands;
    operands.d = outputs[0].mutable_data_ptr();
    auto bits = reinterpret_cast<uintptr_t>(operands.d);
    auto place = [&](int which) -> const void* {
      if (which < 0) return nullptr;
      const void* found = place_of(inputs, which, symbols);
      bits |= reinterpret_cast<uintptr_t>(found);
      return found;
    };
    operands.a = place(operation_.product.a);
    operands.b = place(operation_.product.b);
    operands.c = place(operation_.how.added);
    operands.bias = place(operation_.how.bias);
    if (kept_) {
      if (!outputs[1].defined()) outputs[1] = place_.allocate(*kept_, symbols);
      operands.aux = outputs[1].mutable_data_ptr();
      bits |= reinterpret_cast<uintptr_t>(operands.aux);
    } else {
      operands.aux = const_cast<void*>(place(operation_.how.aux));  // read alone
    }
    if (sums_) {
      if (!outputs[1].defined()) outputs[1] = place_.allocate(*sums_, symbols);
      operands.sums = outputs[1].mutable_data_ptr();
      bits |= reinterpret_cast<uintptr_t>(operands.sums);
    }
    size_t alignment = 0;
    while (bits % static_cast<uintptr_t>(kAlignments[alignment]) != 0) ++alignment;
    const Policy policy = policy_for(operation_.result.dtype);
    if (place_.device.is_cuda()) place_.enter_context();  // threads of a backward pass may have none
    if (is_static_) return known(policy, alignment).run(operands);
    find_matmul(with(operation_.spec(symbols), policy, alignment))->run(operands);
  }

 private:
  const void* place_of(const at::Tensor* const* inputs, int which, std::span<const int64_t> symbols) const {
    const auto* data = static_cast<const char*>(inputs[which]->const_data_ptr());
    const TensorType& type = operation_.operand(which);
    return data + type.offset.eval(symbols) * ir::bytes(type.dtype);
  }

  MatmulSpec with(MatmulSpec spec, Policy policy, size_t alignment) const {
    spec.policy = policy;
    spec.alignment = std::max(kAlignments[alignment], bytes_);
    return spec;
  }

  const Matmul& known(Policy policy, size_t alignment) const {
    const auto& slot = slots_[static_cast<size_t>(policy)][alignment];
    if (const Matmul* found = slot.load(std::memory_order_acquire)) return *found;
    return set_known(policy, alignment, find_matmul(with(known_, policy, alignment)));
  }

  const Matmul& set_known(Policy policy, size_t alignment, std::shared_ptr<const Matmul> made) const {
    const std::lock_guard lock(mutex_);
    held_.push_back(std::move(made));
    slots_[static_cast<size_t>(policy)][alignment].store(held_.back().get(), std::memory_order_release);
    return *held_.back();
  }

  const Operation operation_;
  const Place place_;
  const reference::ResultLayout result_;
  std::optional<reference::ResultLayout> kept_, sums_;  // one at most
  const int bytes_;
  const bool is_static_;
  MatmulSpec known_;  // of constant sizes
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Matmul>> held_;
  mutable std::array<std::array<std::atomic<const Matmul*>, kAlignments.size()>, kPolicies> slots_ = {};
};

bool is_taken(ir::DType dtype) {
  return dtype == ir::DType::float32 || dtype == ir::DType::float64 || dtype == ir::DType::float16 ||
         dtype == ir::DType::bfloat16;
}

}  // namespace

bool is_matmul(const ir::Node& node, int8_t device_type) {
  const Product* product = node.kind == ir::NodeKind::Call ? find_product(node) : nullptr;
  if (!product || !node.outputs[0]) return false;
  const TensorType& result = *node.outputs[0];
  if (result.device.type != device_type || !is_taken(result.dtype)) return false;
  for (const ir::Arg& arg : node.args)
    if (arg.value() &&
        (ir::type_of(*arg.value()).dtype != result.dtype || !(ir::type_of(*arg.value()).device == result.device)))
      return false;
  return own_finishing(node, *product).has_value();
}

codegen::Finish finish_matmul(const codegen::Chain& chain, int kept, bool leaves, Tuning tuning) {
  const auto operation = operation_of(codegen::describe(chain, kept));
  if (!operation) return codegen::Finish::No;
  if (is_plain_view(*chain.back()) || operation->how.kept) return codegen::Finish::Through;
  // A kernel that reads it would widen it on the way, and read half as much.
  if (operation->how.widens && !leaves) return codegen::Finish::Through;
  if (!operation->is_static()) return codegen::Finish::Here;
  MatmulSpec spec = operation->spec({});
  spec.policy = policy_for(spec.dtype);
  const bool wins = tuning == Tuning::None ? find_matmul(spec)->name() != kTorchMatmul : worth_finishing(spec, tuning);
  return wins ? codegen::Finish::Here : codegen::Finish::Through;
}

bool worth_summing(const codegen::Chain& chain, const codegen::Chain& sums, Tuning tuning) {
  NativeOperation native = codegen::describe(chain);
  native.beside = sums.back();
  const auto operation = operation_of(native);
  if (!operation || !operation->is_static()) return false;
  MatmulSpec spec = operation->spec({});
  spec.policy = policy_for(spec.dtype);
  return tuning == Tuning::None ? find_matmul(spec)->name() != kTorchMatmul : worth_finishing(spec, tuning);
}

std::unique_ptr<reference::NativeCall> make_matmul_call(const NativeOperation& operation, Tuning tuning) {
  auto made = operation_of(operation);
  GL_CHECK(made.has_value() && !made->how.kept, "a product that no spec can be made of");
  return std::make_unique<MatmulCall>(std::move(*made), operation, tuning);
}

}  // namespace graphlift::cuda
