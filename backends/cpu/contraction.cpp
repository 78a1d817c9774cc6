// Owns: identity and text of specs.
#include "backends/cpu/contraction.h"

#include "backends/cpu/contraction_hash.h"
#include "base/text.h"

namespace graphlift::cpu {
namespace {

void add(SpecHash& hash, const MatrixLayout& layout) {
  hash.add(layout.batch);
  hash.add(layout.row);
  hash.add(layout.column);
}

std::string words(const MatrixLayout& layout) {
  std::string out = join(layout.batch, ",");
  return cat("(", out, out.empty() ? "" : ",", layout.row, ",", layout.column, ")");
}

}  // namespace

size_t ContractionSpec::hash() const {
  SpecHash out;
  for (int64_t it : {static_cast<int64_t>(dtype), static_cast<int64_t>(out_dtype), static_cast<int64_t>(bias), m, n, k,
                     static_cast<int64_t>(remember_b)})
    out.add(it);
  out.add(batch);
  for (const MatrixLayout* it : {&a, &b, &c}) add(out, *it);
  out.add(post);
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
