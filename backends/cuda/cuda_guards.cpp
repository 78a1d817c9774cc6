// Owns: of ValueWriter (cuda_values.h), places that are computed from indices, and the loads that selections leave out.
#include <algorithm>

#include "backends/cuda/cuda_expression.h"
#include "backends/cuda/cuda_values.h"

namespace graphlift::cuda {

using codegen::ScalarNode;
using ir::Sym;
using Kind = ScalarNode::Kind;

// A load whose only user, through others with only one, is what a selection by place takes or leaves.
void ValueWriter::find_guards() {
  const auto& nodes = kernel_.nodes;
  if (std::none_of(nodes.begin(), nodes.end(), [](const auto& of) { return of.prim == codegen::Prim::Select; })) return;
  std::vector<std::vector<int>> users(kernel_.nodes.size());
  for (size_t i = 0; i < kernel_.nodes.size(); ++i)
    if (is_live(static_cast<int>(i)))
      for (const int arg : node(static_cast<int>(i)).args)
        users[static_cast<size_t>(arg)].push_back(static_cast<int>(i));
  for (const auto& store : kernel_.stores) users[static_cast<size_t>(store.value)].push_back(-1);
  for (int load = 0; load < static_cast<int>(kernel_.nodes.size()); ++load) {
    if (node(load).kind != Kind::Load || kept_.count(load) || shared_.count(load)) continue;
    for (int at = load; users[static_cast<size_t>(at)].size() == 1;) {
      const int user = users[static_cast<size_t>(at)][0];
      if (user < 0 || node(user).kind != Kind::Prim || is_inner(user) != is_inner(load)) break;
      const bool chosen = node(user).prim == codegen::Prim::Select && node(user).args[0] != at;
      if (chosen && is_place(kernel_, node(user).args[0], schedule_.lanes > 1 ? schedule_.vector_axis : -1))
        guards_[load].push_back({node(user).args[0], node(user).args[1] == at});
      at = user;
    }
  }
}

// `by_lane`: that of lane j.
std::string ValueWriter::place_text(int i, bool by_lane) {
  const ScalarNode& of = node(i);
  if (of.kind == Kind::Number)
    return ir::is_floating(of.type) ? number_text(of.real, of.type) : number_text(of.integer.constant(), of.type);
  const Sym stride = by_lane && of.kind == Kind::Index ? lane_stride(of.index) : Sym(0);
  const std::string step = stride.same(0) ? "" : " + j * " + number(stride);
  if (of.kind == Kind::Index) return "(long long)(" + affine(of.index) + step + ")";
  std::vector<std::string> args;
  for (const int arg : of.args) args.push_back("(" + place_text(arg, by_lane) + ")");
  return primitive_text(of.prim, args, node(of.args.back()).type, of.type);
}

bool ValueWriter::is_same_for_lanes(int load) const {
  const auto& args = node(load).args;
  return lane_stride(node(load).index).same(0) &&
         std::all_of(args.begin(), args.end(), [&](int arg) { return is_place(kernel_, arg, schedule_.vector_axis); });
}

std::string ValueWriter::load_place(int i, bool by_lane) {
  std::string place = affine(node(i).index);
  for (size_t k = 0; k < node(i).args.size(); ++k)
    place += " + (idx)(" + place_text(node(i).args[k], by_lane) + ") * " + number(node(i).steps[k]);
  return place;
}

std::string ValueWriter::guard(int load) {
  const auto found = guards_.find(load);
  std::string all;
  if (found == guards_.end()) return all;
  for (const Condition& one : found->second)
    all += std::string(all.empty() ? "" : " && ") + (one.holds ? "(" : "!(") + place_text(one.node) + ")";
  return all;
}

}  // namespace graphlift::cuda
