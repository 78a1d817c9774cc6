// Owns: rows of fused recurrent layers. Must not: hold cells made of pointwise operators.
#include "ops/family.h"
#include "ops/results.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::DType;
using ir::Sym;
using ir::TensorType;

// input, weight0..3, hx, cx, reverse, batch_sizes, mode, hidden_size, num_layers, has_biases, bidirectional,
// batch_first, train
// -> output, hy, cy, workspace: own_sizes.h.
bool mkldnn_layer(ShapeCall& call) {
  const TensorType& input = call.tensor(0);
  if (input.rank() != 3 || !input.device.is_cpu()) return false;
  give_contiguous(call, input, {input.sizes[0], input.sizes[1], call.integer(10)});
  give_contiguous(call, call.tensor(5), call.tensor(5).sizes);
  give_contiguous(call, call.tensor(6), call.tensor(6).sizes);
  return give_contiguous(call, DType::uint8, input.device, {0});
}

// input, weight1..4, hx, cx, output, hy, cy, ... -> gradients of input, the weights, hx, cx. The last weight is a bias:
// both biases get the same gradient.
bool mkldnn_layer_backward(ShapeCall& call) {
  for (size_t i : {0, 1, 2, 3, 4, 5, 6}) give_contiguous(call, call.tensor(i), call.tensor(i).sizes);
  return true;
}

// input_gates, hidden_gates, cx, biases -> hy, cy, workspace.
bool lstm_cell(ShapeCall& call) {
  const TensorType& gates = call.tensor(0);
  const TensorType& cell = call.tensor(2);
  if (!cell.device.is_cuda()) return false;
  give_contiguous(call, cell, cell.sizes);
  give_contiguous(call, cell, cell.sizes);
  return give_contiguous(call, gates, gates.sizes);
}

// input, weight, weight_stride0, weight_buf, hx, cx, mode, hidden_size, proj_size, num_layers, batch_first, dropout,
// train, bidirectional, batch_sizes, dropout_state -> output, hy, cy, reserve, weight_buf. The sizes of the last two
// are cuDNN's own.
bool cudnn_layers(ShapeCall& call) {
  const TensorType& input = call.tensor(0);
  const bool packed = !call.syms(14).empty(), batch_first = call.boolean(10) && !packed;
  if (!input.device.is_cuda() || input.rank() != (packed ? 2 : 3)) return false;
  const Sym directions = call.boolean(13) ? 2 : 1, hidden = call.sym(7);
  const Sym projected = equal(call.env, call.sym(8), 0) ? hidden : call.sym(8);
  const Sym layers = directions * call.integer(9);
  const Sym width = projected * directions;
  Dims sizes = input.sizes;
  sizes.back() = width;
  Dims strides = contiguous(sizes);
  if (batch_first) strides = {width, width * sizes[0], 1};
  const Sym batch = packed ? call.syms(14)[0] : input.sizes[batch_first ? 0 : 1];
  give(call, input.dtype, input.device, std::move(sizes), std::move(strides));
  give_contiguous(call, input, {layers, batch, projected});
  give_contiguous(call, input, call.is_tensor(5) ? Dims{layers, batch, hidden} : Dims{0});
  give_contiguous(call, DType::uint8, input.device, {0});
  const TensorType* weights = call.optional_tensor(3);
  return weights ? give_contiguous(call, *weights, weights->sizes) : false;
}

constexpr OpRow kRecurrent[] = {
    GL_OP("mkldnn_rnn_layer", "default", mkldnn_layer),
    GL_OP("mkldnn_rnn_layer_backward", "default", mkldnn_layer_backward),
    GL_OP("_thnn_fused_lstm_cell", "default", lstm_cell),
    GL_OP("_cudnn_rnn", "default", cudnn_layers),
};

}  // namespace

std::span<const OpRow> recurrent_rows() { return kRecurrent; }

}  // namespace graphlift::ops
