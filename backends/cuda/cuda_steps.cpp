// Owns: of ValueWriter (cuda_values.h), what is done once per row and once per step of a loop.
#include <algorithm>

#include "backends/cuda/cuda_expression.h"
#include "backends/cuda/cuda_values.h"

namespace graphlift::cuda {
namespace {}  // namespace

using codegen::ScalarNode;
using Kind = ScalarNode::Kind;

void ValueWriter::row_values(int at, bool stores, const std::string& guard) {
  std::vector<int> loads, steps;
  for (int i = 0; i < static_cast<int>(kernel_.nodes.size()); ++i) {
    const ScalarNode& of = node(i);
    if (is_inner(i) || phase(i) != at || !is_live(i) || of.kind == Kind::Reduce || is_late(i)) continue;
    if (of.kind == Kind::Number && (ir::is_floating(of.type) || of.integer.is_constant())) continue;
    (of.kind == Kind::Load ? loads : steps).push_back(i);
  }
  std::vector<size_t> written;
  for (size_t i = 0; stores && i < kernel_.stores.size(); ++i)
    if (!varies(kernel_, kernel_.stores[i].index) && phase(kernel_.stores[i].value) == at &&
        !is_late(kernel_.stores[i].value))
      written.push_back(i);
  const int lanes = row_lanes();
  for (const int i : loads) row_load(i, lanes);
  for (const int i : steps)
    if (lanes > 1 && escapes_[static_cast<size_t>(i)])
      line(std::string(compute_name(node(i).type)) + " " + name(i) + "[" + std::to_string(lanes) + "];");
  for (const size_t i : written) declare_written(i, lanes);
  if (!steps.empty() || !written.empty()) {
    declare_draws(steps);
    open_lanes(lanes);
    for (const int i : steps) compute(i, lanes);
    for (const size_t i : written) put_written(i, lanes);
    close_lanes(lanes);
  }
  if (written.empty()) return;
  if (!guard.empty()) line("if (" + guard + ") {");
  for (const size_t i : written) store(i, lanes);
  if (!guard.empty()) line("}");
}

// Threads without a row read nothing.
void ValueWriter::row_load(int i, int lanes) {
  const ScalarNode& of = node(i);
  const bool guarded = schedule_.reduces() && !by_value_[static_cast<size_t>(of.buffer)];
  if (!guarded) return load(i, lanes);
  const std::string type = compute_name(of.type), at = load_place(i), buffer = "b" + std::to_string(of.buffer);
  if (is_next_row(i)) {
    uniform_.insert(i);
    return line("const " + type + " " + name(i) + " = gl_up(w" + std::to_string(i) + ");");
  }
  if (lanes == 1 || is_same_for_lanes(i)) {
    uniform_.insert(i);
    return line("const " + type + " " + name(i) + " = active ? gl_up(" + buffer + "[" + at + "]) : (" + type + ")0;");
  }
  line(type + " " + name(i) + "[" + std::to_string(lanes) + "] = {};");
  line("if (active) {");
  load_lanes(i, name(i), at, lanes);
  line("}");
}

void ValueWriter::declare_written(size_t i, int lanes) {
  if (lanes == 1) return;
  const int value = kernel_.stores[i].value;
  line(std::string(compute_name(node(value).type)) + " y" + std::to_string(static_cast<int64_t>(i)) + "[" +
       std::to_string(lanes) + "];");
}

void ValueWriter::put_written(size_t i, int lanes) {
  const int value = kernel_.stores[i].value;
  const std::string to = "y" + std::to_string(static_cast<int64_t>(i));
  if (lanes > 1) return line(to + "[j] = " + read(value) + ";");
  line("const " + std::string(compute_name(node(value).type)) + " " + to + " = " + read(value) + ";");
}

bool ValueWriter::stores_element(const codegen::KernelStore& store, int at) const {
  return varies(kernel_, store.index) && phase(store.value) == at && !is_late(store.value);
}

bool ValueWriter::has_elements(int at) const {
  for (int i = 0; i < static_cast<int>(kernel_.nodes.size()); ++i)
    if (adds_across(i, at)) return true;
  return std::any_of(kernel_.stores.begin(), kernel_.stores.end(),
                     [&](const auto& store) { return stores_element(store, at); });
}

void ValueWriter::begin_late() {
  begin();
  kept_.clear();
  shared_.clear();
  shared_bytes_ = 0;
}

void ValueWriter::late_values() {
  std::vector<bool> needed(kernel_.nodes.size(), false);
  for (const auto& store : kernel_.stores)
    if (is_late(store.value)) needed[static_cast<size_t>(store.value)] = true;
  for (size_t i = kernel_.nodes.size(); i-- > 0;)
    if (needed[i] && node(static_cast<int>(i)).kind != Kind::Across)
      for (const int arg : kernel_.nodes[i].args) needed[static_cast<size_t>(arg)] = true;
  for (int i = 0; i < static_cast<int>(kernel_.nodes.size()); ++i) {
    const ScalarNode& of = node(i);
    if (!needed[static_cast<size_t>(i)] || of.kind == Kind::Across) continue;
    if (of.kind == Kind::Number && (ir::is_floating(of.type) || of.integer.is_constant())) continue;
    if (of.kind != Kind::Load) declare_draws({i});
    of.kind == Kind::Load ? load(i, 1) : compute(i, 1);
  }
  for (size_t i = 0; i < kernel_.stores.size(); ++i) {
    if (!is_late(kernel_.stores[i].value)) continue;
    put_written(i, 1);
    store(i, 1);
  }
}

void ValueWriter::declare_kept(int at) {
  for (const auto& [i, made] : kept_)
    if (made == at)
      line(std::string(compute_name(node(i).type)) + " k" + std::to_string(i) + "[" +
           std::to_string(schedule_.steps * schedule_.lanes + (schedule_.peeled ? 1 : 0)) + "];");
}

void ValueWriter::element_values(int at, const std::vector<int>& reductions) {
  const int lanes = schedule_.lanes;
  const std::set<int> values = needed(at, true);
  std::erase_if(uniform_, [&](int i) { return is_inner(i); });
  std::vector<size_t> written;
  for (size_t i = 0; i < kernel_.stores.size(); ++i)
    if (stores_element(kernel_.stores[i], at)) written.push_back(i);
  for (const int i : values) {
    if (node(i).kind != Kind::Load) continue;
    const auto shared = shared_.find(i);
    if (shared != shared_.end() && shared->second.made < at) {
      load_shared(i, lanes);
      continue;
    }
    load(i, lanes);
    if (shared != shared_.end()) keep_shared(i, lanes);
  }
  // Maxima that are made together with sums that they shift, from all lanes at once.
  std::set<int> together;
  for (const int reduction : reductions) {
    if (maximum(reduction) < 0) continue;
    together.insert({reduction, maximum(reduction)});
    line(compute_name(node(reduction).type) + std::string(" o") + std::to_string(reduction) + "[" +
         std::to_string(lanes) + "];");
  }
  for (const size_t i : written) declare_written(i, lanes);
  declare_draws({values.begin(), values.end()});
  open_lanes(lanes);
  for (const int i : values)
    if (node(i).kind != Kind::Load) compute(i, lanes);
  for (const int reduction : reductions) {
    if (maximum(reduction) >= 0)
      line("o" + std::to_string(reduction) + (lanes > 1 ? "[j] = " : "[0] = ") +
           read(node(maximum(reduction)).args[0]) + ";");
    if (together.count(reduction)) continue;
    const std::string sum = "r" + std::to_string(reduction) + (row_lanes() > 1 ? "[j]" : "");
    line(sum + " = " + combine_name(node(reduction).reduce) + "::of(" + sum + ", " + read(node(reduction).args[0]) +
         ");");
  }
  for (int i = 0; i < static_cast<int>(kernel_.nodes.size()); ++i) {
    if (!adds_across(i, at)) continue;
    const std::string sum =
        "c" + std::to_string(i) + "[s" + (lanes > 1 ? " * " + std::to_string(lanes) + " + j]" : "]");
    line(sum + " = " + combine_name(node(i).reduce) + "::of(" + sum + ", " + read(node(i).args[0]) + ");");
  }
  for (const size_t i : written) put_written(i, lanes);
  close_lanes(lanes);
  for (const int reduction : reductions)
    if (maximum(reduction) >= 0)
      line("gl_add_exponentials<" + std::to_string(lanes) + ">(o" + std::to_string(reduction) + ", r" +
           std::to_string(maximum(reduction)) + ", r" + std::to_string(reduction) + ");");
  for (const size_t i : written) store(i, lanes);
}

}  // namespace graphlift::cuda
