// Owns: see seeding.h.
#include "torch/seeding.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/gil.h"
#include "base/ref.h"
#include "torch/objects.h"

namespace graphlift::torch_layer {
namespace {

constexpr std::string_view kName = "graphlift generator ";
constexpr std::string_view kMadeName = "graphlift made generator ";

std::mutex& seeds_mutex() {
  static auto* made = new std::mutex;
  return *made;
}

std::vector<at::Generator>& generators() {
  static auto* all = new std::vector<at::Generator>;
  return *all;
}

// Python's own function knows which devices are seeded, and which of them only when they are first used.
void seed_everything(int64_t seed) {
  WithGil gil;
  Ref module = Ref::steal(PyImport_ImportModule("torch.random"));
  Ref done =
      module ? Ref::steal(PyObject_CallMethod(module.get(), "manual_seed", "L", static_cast<long long>(seed))) : Ref();
  if (done) return;
  PyErr_Clear();
  throw InternalError("torch.manual_seed failed");
}

void manual_seed(const std::optional<at::Generator>& generator, int64_t seed) {
  if (!generator) return seed_everything(seed);
  at::Generator seeded = *generator;
  std::lock_guard<std::mutex> lock(seeded.mutex());
  seeded.set_current_seed(static_cast<uint64_t>(seed));
}

at::Generator or_default(const std::optional<at::Generator>& generator) {
  return generator ? *generator : at::detail::getDefaultCPUGenerator();
}

at::Tensor generator_state(const std::optional<at::Generator>& given) {
  at::Generator generator = or_default(given);
  std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const std::optional<at::Generator>& given, const at::Tensor& state) {
  at::Generator generator = or_default(given);
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

at::Generator made_generator(const std::string& name) {
  thread_local std::unordered_map<std::string, at::Generator> made;
  auto found = made.find(name);
  return found != made.end() ? found->second : made.emplace(name, at::detail::createCPUGenerator()).first->second;
}

}  // namespace

int64_t state_size(const at::Generator& generator) {
  c10::impl::ExcludeDispatchKeyGuard below(
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
  return generator_state(generator).numel();
}

std::string name_of_made_generator() {
  static std::atomic<int64_t> last{0};
  return std::string(kMadeName) + std::to_string(++last);
}

bool names_made_generator(const std::string& text) { return text.starts_with(kMadeName); }

void register_seeding() {
  static auto* library = [] {
    if (c10::Dispatcher::singleton().findSchema({"graphlift::manual_seed", ""}))
      return static_cast<torch::Library*>(nullptr);
    auto* made = new torch::Library(torch::Library::FRAGMENT, "graphlift", std::nullopt, __FILE__, __LINE__);
    made->def("manual_seed(Generator? generator, int seed) -> ()", manual_seed);
    made->def("generator_state(Generator? generator) -> Tensor", generator_state);
    made->def("set_generator_state(Generator? generator, Tensor state) -> ()", set_generator_state);
    return made;
  }();
  (void)library;
}

bool is_generator(PyObject* object) { return std::string_view(Py_TYPE(object)->tp_name) == "torch._C.Generator"; }

ir::Arg generator_argument(const at::Generator& generator) {
  if (generator == at::globalContext().defaultGenerator(generator.device())) return ir::None();
  std::lock_guard<std::mutex> lock(seeds_mutex());
  std::vector<at::Generator>& all = generators();
  size_t index = 0;
  while (index < all.size() && !(all[index] == generator)) ++index;
  if (index == all.size()) all.push_back(generator);
  return std::string(kName) + std::to_string(index);
}

bool names_generator(const std::string& text) { return text.starts_with(kName); }

at::Generator named_generator(const std::string& name) {
  if (names_made_generator(name)) return made_generator(name);
  std::lock_guard<std::mutex> lock(seeds_mutex());
  const size_t index = names_generator(name) ? std::stoul(name.substr(kName.size())) : generators().size();
  GL_CHECK(index < generators().size(), "no generator is called " + name);
  return generators()[index];
}

}  // namespace graphlift::torch_layer
