// Owns: declarations of special calls whose code has a file of its own. Rows are in special_ops.cpp.
// Must not: be included by others than special_*.cpp.
#pragma once

#include "torch/op_info.h"

namespace graphlift::torch_layer {

// Batch norms that change running statistics without saying so in their schema.
bool native_batch_norm(Recorder& recorder, const c10::OperatorHandle& handle, const OpInfo& info,
                       torch::jit::Stack& stack);
bool cudnn_batch_norm(Recorder& recorder, const c10::OperatorHandle& handle, const OpInfo& info,
                      torch::jit::Stack& stack);

}  // namespace graphlift::torch_layer
