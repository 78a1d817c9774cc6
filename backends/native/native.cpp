// Owns: see native.h.
#include "backends/native/native.h"

#include <mutex>

#include "backend/backend.h"
#include "base/error.h"
#include "base/log.h"

namespace graphlift::native {
namespace {

// First come, first asked.
constexpr const char* kBackends[] = {"cpu", "cuda", "reference"};

bool supports_all(const backend::Backend& backend, const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes())
    for (const auto& type : node.outputs)
      if (type && !backend.supports(type->device)) return false;
  return true;
}

class Native final : public backend::Backend {
 public:
  std::string name() const override { return "native"; }
  bool supports(ir::Device) const override { return true; }
  std::unique_ptr<backend::CompiledGraph> compile(const ir::Graph& graph, const std::vector<at::Tensor>& constants,
                                                  const backend::Options& options) const override {
    for (const char* name : kBackends) {
      const auto found = backend::find_backend(name);
      if (!found || !supports_all(*found, graph)) continue;
      if (found->name() == kBackends[std::size(kBackends) - 1])
        log(Artifact::PerfHints, "no kernels are made for a graph of devices that no native backend takes together");
      return found->compile(graph, constants, options);
    }
    throw InternalError("no backend takes this graph");
  }
  bool chooses_layouts() const override { return true; }
  std::string fingerprint() const override { return "native"; }
};

}  // namespace

void register_native_backend() {
  static std::once_flag once;
  std::call_once(once, [] { backend::register_backend(std::make_unique<Native>()); });
}

}  // namespace graphlift::native
