// Owns: of ValueWriter (cuda_values.h), rows that are copied ahead of their turn, and what is the same for all rows.
#include <algorithm>

#include "backends/cuda/cuda_expression.h"
#include "backends/cuda/cuda_values.h"

namespace graphlift::cuda {

using codegen::ScalarNode;
using Kind = ScalarNode::Kind;

// A thread reads the places of shared memory that it copied to, and no others.
void ValueWriter::find_ahead() {
  const int own = schedule_.steps * schedule_.lanes;
  int64_t row = 0;
  int left = kKeptRegisters / std::max(1, own);
  for (int i = 0; i < static_cast<int>(kernel_.nodes.size()); ++i) {
    const ScalarNode& of = node(i);
    if (of.kind != Kind::Load || !is_live(i) || !is_inner(i) || by_value_[static_cast<size_t>(of.buffer)]) continue;
    if (is_ahead(i)) {
      shared_.emplace(i, Shared{-1, row});
      row += int64_t{own} * schedule_.threads * ir::bytes(kernel_.buffers[static_cast<size_t>(of.buffer)].dtype);
      continue;
    }
    const int registers = std::max(1, ir::bytes(of.type) / 4);
    if (!of.args.empty() || !is_steady(kernel_, of.index) || lane_stride(of.index).same(0) || registers > left)
      continue;
    left -= registers;
    kept_.emplace(i, -1);
  }
  shared_bytes_ = row * schedule_.stages;
}

// Values that one phase computes and a later one begins with.
std::set<int> ValueWriter::met_again(const std::map<int, int>& first) const {
  std::set<int> found;
  for (int at = 1; at < schedule_.phases; ++at) {
    auto meet = [&](int i) {
      const auto made = first.find(i);
      if (made != first.end() && made->second < at && !kept_.count(i)) found.insert(i);
    };
    for (const auto& [i, made] : first)
      if (made == at)
        for (const int arg : node(i).args) meet(arg);
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      const int user = static_cast<int>(i);
      const bool reduces = node(user).kind == Kind::Reduce && is_live(user) && phase(user) == at + 1;
      if (reduces || adds_across(user, at)) meet(node(user).args[0]);
    }
    for (const auto& store : kernel_.stores)
      if (stores_element(store, at)) meet(store.value);
  }
  return found;
}

void ValueWriter::keep_met_again() {
  std::map<int, int> uses;
  const std::map<int, int> first = first_uses(&uses);
  const std::set<int> found = met_again(first);
  int registers = 0;
  for (const int i : found) registers += std::max(1, ir::bytes(node(i).type) / 4);
  for (const auto& [i, made] : kept_) registers += std::max(1, ir::bytes(node(i).type) / 4);
  if (registers * schedule_.steps * schedule_.lanes > kKeptRegisters) return;
  for (const int i : found) kept_.emplace(i, first.at(i));
}

void ValueWriter::declare_steady() { declare_kept(-1); }

void ValueWriter::load_steady() {
  for (const auto& [i, made] : kept_)
    if (made < 0) load(i, schedule_.lanes);
}

void ValueWriter::copy_ahead() {
  for (const auto& [i, shared] : shared_) {
    line("gl_copy_ahead<" + std::to_string(schedule_.lanes) + ">(" + shared_place(i) + ", b" +
         std::to_string(node(i).buffer) + " + (" + affine(node(i).index) + "));");
  }
}

bool ValueWriter::is_next_row(int i) const {
  const ScalarNode& of = node(i);
  return schedule_.stages > 0 && of.kind == Kind::Load && is_live(i) && !is_inner(i) && !is_late(i) && phase(i) == 0 &&
         of.args.empty() && !by_value_[static_cast<size_t>(of.buffer)] && !is_steady(kernel_, of.index);
}

void ValueWriter::declare_next_row() {
  for (int i = 0; i < static_cast<int>(kernel_.nodes.size()); ++i)
    if (is_next_row(i))
      line(memory_name(kernel_.buffers[static_cast<size_t>(node(i).buffer)].dtype) + std::string(" m") +
           std::to_string(i) + " = {};");
}

void ValueWriter::take_next_row() {
  for (int i = 0; i < static_cast<int>(kernel_.nodes.size()); ++i)
    if (is_next_row(i))
      line("const " + std::string(memory_name(kernel_.buffers[static_cast<size_t>(node(i).buffer)].dtype)) + " w" +
           std::to_string(i) + " = m" + std::to_string(i) + ";");
}

void ValueWriter::read_next_row() {
  for (int i = 0; i < static_cast<int>(kernel_.nodes.size()); ++i)
    if (is_next_row(i))
      line("if (active) m" + std::to_string(i) + " = b" + std::to_string(node(i).buffer) + "[" + affine(node(i).index) +
           "];");
}

}  // namespace graphlift::cuda
