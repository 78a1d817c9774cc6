// Owns: identity and text of specs.
#include "backends/cpu/contraction.h"

#include "base/text.h"

namespace graphlift::cpu {
namespace {

class Hash {
 public:
  void add(int64_t value) {
    state_ = (state_ ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u;
    state_ ^= state_ >> 29;
  }
  void add(const std::vector<int64_t>& values) {
    add(static_cast<int64_t>(values.size()));
    for (int64_t value : values) add(value);
  }
  void add(const MatrixLayout& layout) {
    add(layout.batch);
    add(layout.row);
    add(layout.column);
  }
  size_t result() const { return state_; }

 private:
  uint64_t state_ = 0xCBF29CE484222325u;
};

std::string words(const MatrixLayout& layout) {
  std::string out = join(layout.batch, ",");
  return cat("(", out, out.empty() ? "" : ",", layout.row, ",", layout.column, ")");
}

}  // namespace

size_t ContractionSpec::hash() const {
  Hash out;
  for (int64_t it : {static_cast<int64_t>(dtype), static_cast<int64_t>(out_dtype), static_cast<int64_t>(bias), m, n, k})
    out.add(it);
  out.add(batch);
  for (const MatrixLayout* it : {&a, &b, &c}) out.add(*it);
  for (const PostOp& it : post) {
    out.add(static_cast<int64_t>(it.kind));
    out.add(it.operand.strides);
    out.add(static_cast<int64_t>(it.alpha * 65536));
  }
  out.add(remember_b);
  return out.result();
}

std::string ContractionSpec::str() const {
  std::string out = ir::short_name(dtype);
  if (out_dtype != dtype) append(&out, cat("->", ir::short_name(out_dtype)));
  append(&out, ' ');
  for (int64_t size : batch) append(&out, cat(size, "x"));
  append(&out, cat(m, "x", n, "x", k, " a", words(a), " b", words(b), " c", words(c)));
  if (bias != ir::DType::undefined) append(&out, cat(" +bias ", ir::short_name(bias)));
  for (const PostOp& it : post) append(&out, cat(" ", name(it.kind)));
  if (remember_b) append(&out, " remember_b");
  return out;
}

}  // namespace graphlift::cpu
