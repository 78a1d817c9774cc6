// Owns: the table of all operators and its lookup. Must not: hold rules or rows.
#include <unordered_map>

#include "base/error.h"
#include "ops/family.h"

namespace graphlift::ops {
namespace {

struct Table {
  std::vector<const OpRow*> rows;
  std::unordered_map<const char*, const OpRow*> by_name;  // keyed by the interned name's address

  Table() {
#define FAMILY(name) add(name##_rows());
    GRAPHLIFT_OP_FAMILIES(FAMILY)
#undef FAMILY
  }

  void add(std::span<const OpRow> family) {
    for (const OpRow& row : family) {
      const bool fresh = by_name.emplace(ir::Op(row.name).str().data(), &row).second;
      GL_CHECK(fresh, "two rows for " + std::string(row.name));
      rows.push_back(&row);
    }
  }
};

const Table& table() {
  static const Table table;
  return table;
}

}  // namespace

const OpRow* find_op(ir::Op op) {
  const auto& by_name = table().by_name;
  auto found = by_name.find(op.str().data());
  return found == by_name.end() ? nullptr : found->second;
}

std::span<const OpRow* const> all_ops() { return table().rows; }

}  // namespace graphlift::ops
