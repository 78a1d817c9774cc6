// Owns: see kernel_name.h.
#include "backends/cuda/kernel_name.h"

#include <algorithm>
#include <vector>

namespace graphlift::cuda {
namespace {

using codegen::Prim;
using codegen::ScalarNode;
using Kind = ScalarNode::Kind;

constexpr size_t kMostWords = 6;

std::string size_text(const ir::Sym& size) { return size.is_constant() ? std::to_string(size.constant()) : "n"; }

// Of what is computed, once each; what says least is left out.
std::vector<std::string> words(const codegen::Kernel& kernel) {
  std::vector<std::string> found;
  for (const ScalarNode& node : kernel.nodes) {
    std::string word;
    if (node.kind == Kind::Prim && node.prim != Prim::Copy) word = row(node.prim).name;
    if (node.kind == Kind::Reduce) word = name(node.reduce);
    if (!word.empty() && std::find(found.begin(), found.end(), word) == found.end()) found.push_back(std::move(word));
  }
  if (found.empty()) found.emplace_back("copy");
  // What comes last is closest to the results.
  if (found.size() > kMostWords) found.erase(found.begin(), found.end() - kMostWords);
  return found;
}

}  // namespace

std::string kernel_name(const codegen::Kernel& kernel, const Schedule& schedule, int launch) {
  static constexpr const char* kShapes[] = {"elements", "rows", "columns"};
  std::string text =
      std::string("gl_") + (schedule.tile_axis >= 0 ? "tiles" : kShapes[static_cast<int>(schedule.shape)]);
  text += "_" + size_text(product(kernel, schedule.kept));
  if (schedule.reduces()) text += "x" + size_text(product(kernel, schedule.inner));
  for (const std::string& word : words(kernel)) text += "_" + word;
  return text + "_" + std::to_string(launch);
}

}  // namespace graphlift::cuda
