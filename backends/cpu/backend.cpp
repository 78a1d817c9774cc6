// Owns: the cpu backend's entry in the registry, and what it does with a graph.
#include <mutex>

#include "backends/codegen/fuse.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/jit.h"
#include "backends/cpu/kernel_call.h"
#include "backends/reference/program.h"

namespace graphlift::cpu {
namespace {

class Cpu final : public backend::Backend {
 public:
  std::string name() const override { return "cpu"; }
  bool supports(ir::Device device) const override { return device.is_cpu(); }

  std::unique_ptr<backend::CompiledGraph> compile(const ir::Graph& graph,
                                                  const std::vector<at::Tensor>& constants) const override {
    if (!jit_refusal().empty()) return std::make_unique<reference::Program>(graph, constants);
    codegen::FuseOptions options;
    options.lower.device_type = 0;
    const codegen::FusedGraph fused = codegen::fuse(graph, options);
    auto native = [&](const ir::Node& node) -> std::unique_ptr<reference::NativeCall> {
      if (!(node.op == codegen::kernel_op())) return nullptr;
      const auto& kernel = fused.kernels[static_cast<size_t>(node.args[0].sym()->constant())];
      return make_kernel_call(node, compile_kernel(kernel));
    };
    return std::make_unique<reference::Program>(*fused.graph, constants, native);
  }

  std::string fingerprint() const override { return "cpu"; }
};

}  // namespace

void register_cpu_backend() {
  static std::once_flag once;
  std::call_once(once, [] { backend::register_backend(std::make_unique<Cpu>()); });
}

}  // namespace graphlift::cpu
