// Owns: see own_sizes.h.
#include "ops/own_sizes.h"

#include <string_view>

namespace graphlift::ops {
namespace {

struct OwnSizeRow {
  std::string_view op;
  int first, last;  // results
  bool for_gradients;
};
constexpr OwnSizeRow kOwnSizes[] = {
    {"aten::mkldnn_rnn_layer.default", 3, 3, true},
    {"aten::_cudnn_rnn.default", 3, 3, false},
    {"aten::cudnn_batch_norm.default", 3, 3, false},
    {"aten::_embedding_bag.default", 1, 3, false},
};

const OwnSizeRow* find(ir::Op op, int index) {
  for (const OwnSizeRow& row : kOwnSizes)
    if (op.str() == row.op && row.first <= index && index <= row.last) return &row;
  return nullptr;
}

}  // namespace

bool has_own_size(ir::Op op, int index) { return find(op, index); }

bool is_made_for_gradients(ir::Op op, int index) {
  const OwnSizeRow* row = find(op, index);
  return row && row->for_gradients;
}

}  // namespace graphlift::ops
