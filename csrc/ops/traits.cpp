// Owns: the tables of effects and of work, by operator name.
// Must not: name overloads unless they differ from their base.
#include "ops/traits.h"

#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

namespace graphlift::ops {
namespace {

struct TraitsRow {
  Effect effect;
  Work work;
  std::string_view names;  // base names, separated by blanks; with a point: that overload alone
};

constexpr TraitsRow kTraits[] = {
    {Effect::None, Work::View,
     "_conj _neg_view _reshape_alias _unsafe_view alias as_strided conj detach diagonal expand expand_as imag "
     "lift_fresh "
     "narrow permute positive real reshape select slice split split_with_sizes squeeze swapaxes t transpose unbind "
     "unfold "
     "unsqueeze view view_as view_as_complex view_as_real"},
    {Effect::None, Work::Cheap,
     "__lshift__ __rshift__ _conj_physical _to_copy abs add addcdiv addcmul arange bitwise_and bitwise_left_shift "
     "bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clone conj_physical "
     "copysign "
     "deg2rad div elu_backward empty_like eq expand_copy eye fill floor floor_divide fmax fmin fmod frac full "
     "full_like ge "
     "gt hardshrink hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh hardtanh_backward heaviside "
     "isfinite isinf isnan le leaky_relu leaky_relu_backward lerp lift_fresh_copy logical_and logical_not logical_or "
     "logical_xor lt masked_fill max.other maximum min.other minimum mul nan_to_num native_dropout_backward ne neg "
     "new_full "
     "new_ones new_zeros ones ones_like rad2deg reciprocal relu relu6 remainder round rsqrt rsub scalar_tensor sgn "
     "sign signbit softshrink sqrt square sub threshold threshold_backward tril triu trunc where.Scalar "
     "where.ScalarOther "
     "where.ScalarSelf where.self zeros zeros_like"},
    {Effect::None, Work::Costly,
     "acos acosh asin asinh atan atan2 atanh celu cos cosh digamma elu erf erfc erfinv exp exp2 expm1 float_power gelu "
     "gelu_backward hypot lgamma log log10 log1p log2 logaddexp logaddexp2 logit logit_backward mish mish_backward pow "
     "selu "
     "sigmoid sigmoid_backward silu silu_backward sin sinc sinh softplus softplus_backward special_entr special_erfcx "
     "special_i0e special_i1 special_log_ndtr special_ndtri special_xlog1py tan tanh tanh_backward xlogy"},
    {Effect::Random, Work::Heavy,
     "_cudnn_attention_forward _cudnn_init_dropout_state _cudnn_rnn _efficient_attention_forward "
     "_flash_attention_forward "
     "_fused_dropout _sample_dirichlet _scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention "
     "_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention "
     "_scaled_dot_product_fused_attention_overrideable _standard_gamma alpha_dropout bernoulli binomial cauchy dropout "
     "exponential feature_alpha_dropout feature_dropout geometric gru log_normal lstm miopen_rnn multinomial "
     "native_dropout "
     "normal normal_functional poisson rand rand_like randint randint_like randn randn_like random randperm rnn_relu "
     "rnn_tanh rrelu rrelu_with_noise_functional scaled_dot_product_attention uniform"},
    {Effect::None, Work::Heavy, "_native_batch_norm_legit.no_stats"},
    // Other batch norms write running statistics that their schemas don't mark as written.
    {Effect::Write, Work::Heavy,
     "_assert_async _assert_scalar _batch_norm_with_update _cummax_helper _cummin_helper _functional_assert_async "
     "_flash_attention_forward_no_dropout_inplace _fused_moving_avg_obs_fq_helper _local_scalar_dense "
     "_native_batch_norm_legit _print batch_norm cudnn_batch_norm fused_moving_avg_obs_fake_quant manual_seed "
     "miopen_batch_norm native_batch_norm record_stream rrelu_with_noise seed set_data sym_constrain_range "
     "sym_constrain_range_for_size"},
};

const std::unordered_map<std::string_view, OpTraits>& traits_by_name() {
  static const auto* table = [] {
    auto* made = new std::unordered_map<std::string_view, OpTraits>;
    for (const TraitsRow& row : kTraits) {
      for (std::string_view rest = row.names; !rest.empty();) {
        size_t end = rest.find(' ');
        (*made)[rest.substr(0, end)] = {row.effect, row.work};
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
      }
    }
    return made;
  }();
  return *table;
}

// add_, but not __and__; sum.out, xlogy.OutTensor, relu_backward.grad_input.
bool writes_by_name(std::string_view base, std::string_view overload) {
  bool in_place = base.ends_with('_') && !base.ends_with("__");
  return in_place || overload.find("out") != std::string_view::npos || overload.starts_with("Out") ||
         overload == "grad_input";
}

OpTraits find(std::string_view name) {
  constexpr std::string_view kAten = "aten::";
  if (name == "graphlift::constant") return {Effect::None, Work::View};
  if (name.starts_with("graphlift::host_kernel")) return {Effect::None, Work::Heavy};
  if (name == "graphlift::manual_seed.default" || name == "graphlift::generator_state.default" ||
      name == "graphlift::set_generator_state.default" || name == "graphlift::draw.default")
    return {Effect::Random, Work::Heavy};
  if (name == "graphlift::dropout.default" || name == "graphlift::columns.default") return {Effect::None, Work::Heavy};
  if (!name.starts_with(kAten)) return {Effect::Write, Work::Heavy};
  std::string_view local = name.substr(kAten.size()), base = local.substr(0, local.find('.'));
  std::string_view overload = base.size() < local.size() ? local.substr(base.size() + 1) : std::string_view();
  if (writes_by_name(base, overload)) return {Effect::Write, Work::Heavy};
  const auto& rows = traits_by_name();
  if (auto found = rows.find(local); found != rows.end()) return found->second;
  if (auto found = rows.find(base); found != rows.end()) return found->second;
  return {};
}

}  // namespace

OpTraits traits(ir::Op op) {
  static std::shared_mutex mutex;
  static auto* known = new std::unordered_map<const void*, OpTraits>;
  {
    std::shared_lock lock(mutex);
    if (auto found = known->find(op.key()); found != known->end()) return found->second;
  }
  OpTraits made = find(op.str());
  std::unique_lock lock(mutex);
  known->emplace(op.key(), made);
  return made;
}

const ir::ValueRef* viewed_value(const ir::Node& node) {
  if (node.kind != ir::NodeKind::Call || node.args.empty() || traits(node.op).work != Work::View) return nullptr;
  return node.args[0].value();
}

ir::ValueRef memory_owner(ir::ValueRef value) {
  while (const ir::ValueRef* viewed = viewed_value(*value.node)) value = *viewed;
  return value;
}

}  // namespace graphlift::ops
