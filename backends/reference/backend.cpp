// Owns: the reference backend's entry in the registry.
#include <mutex>

#include "backends/reference/program.h"
#include "backends/reference/reference.h"

namespace graphlift::reference {
namespace {

class Reference final : public backend::Backend {
 public:
  std::string name() const override { return "reference"; }
  bool supports(ir::Device) const override { return true; }
  std::unique_ptr<backend::CompiledGraph> compile(const ir::Graph& graph, const std::vector<at::Tensor>& constants,
                                                  const backend::Options&) const override {
    return std::make_unique<Program>(graph, constants);
  }
  std::string fingerprint() const override { return "reference"; }
};

}  // namespace

void register_reference_backend() {
  static std::once_flag once;
  std::call_once(once, [] { backend::register_backend(std::make_unique<Reference>()); });
}

}  // namespace graphlift::reference
