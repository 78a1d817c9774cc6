// Owns: see row_sum_call.h.
#include "backends/cpu/row_sum_call.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/check_call.h"
#include "backends/cpu/result_layout.h"
#include "backends/cpu/thread_team.h"
#include "backends/cpu/widest.h"
#include "ops/layout.h"

namespace graphlift::cpu {
namespace {

using codegen::NativeOperation;
using codegen::PlaceCheck;
using ir::DType;

// An operator's arguments: what the rows are added to (none: zeros), where, and the rows.
struct Form {
  const ir::ValueRef *base = nullptr, *index = nullptr, *rows = nullptr;
  std::optional<PlaceCheck::Words> words;  // of the error for a place out of range; none: its row is left out
  int64_t skipped = -1;                    // rows for this place are left out
};

bool is_false(const ir::Arg& arg) { return std::get_if<bool>(&arg) && !std::get<bool>(arg); }

// grad, indices, num_weights, padding_idx, scale_grad_by_freq.
bool read_embedding(const ir::Node& node, Form* form) {
  form->rows = node.args[0].value();
  form->index = node.args[1].value();
  const ir::Sym* padding = node.args[3].sym();
  if (!padding || !padding->is_constant() || !is_false(node.args[4])) return false;
  form->skipped = padding->constant();
  return true;
}

// self, dim, index, source, alpha.
bool read_index_add(const ir::Node& node, Form* form) {
  form->base = node.args[0].value();
  form->index = node.args[2].value();
  form->rows = node.args[3].value();
  form->words = PlaceCheck::Words::Gather;
  return ir::is_number(node.args[1], 0) && ir::is_number(node.args[4], 1) && ir::type_of(*form->index).rank() == 1;
}

// self, indices, values, accumulate: one index, of the first dim.
bool read_index_put(const ir::Node& node, Form* form) {
  const ir::ArgList* list = node.args[1].list();
  if (!list || list->size() != 1 || !(*list)[0].value() || is_false(node.args[3])) return false;
  form->base = node.args[0].value();
  form->index = (*list)[0].value();
  form->rows = node.args[2].value();
  form->words = PlaceCheck::Words::Index;
  return true;
}

struct FormRow {
  std::string_view name;
  bool (*read)(const ir::Node&, Form*);
};

constexpr FormRow kForms[] = {
    {"aten::embedding_dense_backward.default", read_embedding},
    {"aten::index_add.default", read_index_add},
    {"aten::index_put.default", read_index_put},
    {"aten::_unsafe_index_put.default", read_index_put},
};

std::optional<Form> form_of(const ir::Node& node) {
  for (const FormRow& row : kForms) {
    Form form;
    if (node.op.str() == row.name && row.read(node, &form) && form.index && form.rows) return form;
  }
  return std::nullopt;
}

bool is_plain(const ir::TensorType& type) {
  return type.device.is_cpu() && ops::same(type.strides, ir::contiguous_strides(type.sizes));
}

template <class T>
GL_WIDEST void add_row(T* __restrict to, const T* __restrict row, int64_t width) {
  for (int64_t i = 0; i < width; ++i) to[i] += row[i];
}

class RowSumCall final : public reference::NativeCall {
 public:
  explicit RowSumCall(const NativeOperation& operation)
      : form_(*form_of(*operation.node)), result_(*operation.node->outputs[0]), type_(*operation.node->outputs[0]) {
    int place = 0;
    codegen::for_each_read({operation.node}, [&](const ir::ValueRef& value) {
      if (form_.base && value == *form_.base) base_ = place;
      if (value == *form_.index) index_ = place;
      if (value == *form_.rows) rows_ = place;
      ++place;
    });
    operands_ = operation.operands;
    if (!form_.words) return;
    const bool wraps = *form_.words == PlaceCheck::Words::Index;
    codegen::CheckOperation check;
    check.what = {*form_.index, type_.sizes[0], 0, *form_.words, wraps, std::nullopt};
    check.type = operand(index_);
    check_ = make_check_call(check);
  }

  bool fills(size_t) const override { return true; }

  void run(const at::Tensor* const* inputs, at::Tensor* outputs, std::span<const int64_t> symbols) const override {
    if (check_) check_->run(inputs + index_, nullptr, symbols);
    if (!outputs[0].defined()) outputs[0] = result_.allocate(symbols);
    if (type_.dtype == DType::float64)
      sum<double>(inputs, outputs[0], symbols);
    else
      sum<float>(inputs, outputs[0], symbols);
  }

 private:
  const ir::TensorType& operand(int place) const { return operands_[static_cast<size_t>(place)]; }

  template <class T>
  const T* data(const at::Tensor* const* inputs, int place, std::span<const int64_t> symbols) const {
    return inputs[place]->const_data_ptr<T>() + operand(place).offset.eval(symbols);
  }

  template <class T>
  void sum(const at::Tensor* const* inputs, const at::Tensor& result, std::span<const int64_t> symbols) const {
    if (operand(index_).dtype == DType::int32)
      sum<T>(data<int32_t>(inputs, index_, symbols), inputs, result, symbols);
    else
      sum<T>(data<int64_t>(inputs, index_, symbols), inputs, result, symbols);
  }

  // One thread's part are places of the result, so that rows are added in order whatever the number of threads.
  template <class T, class Place>
  struct Job {
    T* result;
    const T *base, *rows;
    const Place* places;
    int64_t count, height, width, skipped;

    static void run(void* context, int64_t begin, int64_t end) {
      const Job& job = *static_cast<const Job*>(context);
      T* const first = job.result + begin * job.width;
      const size_t bytes = static_cast<size_t>((end - begin) * job.width) * sizeof(T);
      if (job.base)
        std::memcpy(first, job.base + begin * job.width, bytes);
      else
        std::memset(first, 0, bytes);
      for (int64_t i = 0; i < job.count; ++i) {
        int64_t place = job.places[i];
        if (place == job.skipped) continue;
        if (place < 0) place += job.height;
        if (place >= begin && place < end) add_row(job.result + place * job.width, job.rows + i * job.width, job.width);
      }
    }
  };

  template <class T, class Place>
  void sum(const Place* places, const at::Tensor* const* inputs, const at::Tensor& result,
           std::span<const int64_t> symbols) const {
    if (result.numel() == 0) return;
    int64_t count = 1;
    for (const ir::Sym& size : operand(index_).sizes) count *= size.eval(symbols);
    const int64_t height = result.size(0), width = result.numel() / height;
    // Embeddings take no place from the end; there is none then that would be skipped otherwise.
    const int64_t skipped = form_.words ? INT64_MIN : form_.skipped;
    Job<T, Place> job{result.mutable_data_ptr<T>(),
                      base_ < 0 ? nullptr : data<T>(inputs, base_, symbols),
                      data<T>(inputs, rows_, symbols),
                      places,
                      count,
                      height,
                      width,
                      skipped};
    constexpr int64_t kThreadWork = 65536;
    const int64_t work = (height + 4 * count) * width;
    share_units(height, work < 2 * kThreadWork ? height : (height + 63) / 64, Job<T, Place>::run, &job);
  }

  const Form form_;
  const ResultLayout result_;
  const ir::TensorType type_;
  std::vector<ir::TensorType> operands_;
  int base_ = -1, index_ = -1, rows_ = -1;
  std::unique_ptr<reference::NativeCall> check_;
};

}  // namespace

bool is_row_sum(const ir::Node& node) {
  const auto form = form_of(node);
  if (!form || !node.outputs[0]) return false;
  const ir::TensorType &result = *node.outputs[0], &index = ir::type_of(*form->index), &rows = ir::type_of(*form->rows);
  if (result.dtype != DType::float32 && result.dtype != DType::float64) return false;
  if (result.rank() == 0 || rows.dtype != result.dtype || (index.dtype != DType::int64 && index.dtype != DType::int32))
    return false;
  if (!is_plain(result) || !is_plain(index) || !is_plain(rows)) return false;
  if (form->base && (ir::type_of(*form->base).dtype != result.dtype || !is_plain(ir::type_of(*form->base))))
    return false;
  ir::Dims sizes = index.sizes;
  sizes.insert(sizes.end(), result.sizes.begin() + 1, result.sizes.end());
  return ops::same(sizes, rows.sizes);
}

std::unique_ptr<reference::NativeCall> make_row_sum_call(const NativeOperation& operation) {
  return std::make_unique<RowSumCall>(operation);
}

}  // namespace graphlift::cpu
