// Owns: see seeding.h.
#include "torch/seeding.h"

#include <ATen/Context.h>
#include <torch/library.h>

#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/gil.h"
#include "base/ref.h"
#include "torch/objects.h"

namespace graphlift::torch_layer {
namespace {

constexpr std::string_view kName = "graphlift generator ";

std::mutex& mutex() {
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

}  // namespace

void register_seeding() {
  static auto* library = [] {
    if (c10::Dispatcher::singleton().findSchema({"graphlift::manual_seed", ""}))
      return static_cast<torch::Library*>(nullptr);
    auto* made = new torch::Library(torch::Library::FRAGMENT, "graphlift", std::nullopt, __FILE__, __LINE__);
    made->def("manual_seed(Generator? generator, int seed) -> ()", manual_seed);
    return made;
  }();
  (void)library;
}

bool is_generator(PyObject* object) { return std::string_view(Py_TYPE(object)->tp_name) == "torch._C.Generator"; }

ir::Arg generator_argument(const at::Generator& generator) {
  if (generator == at::globalContext().defaultGenerator(generator.device())) return ir::None();
  std::lock_guard<std::mutex> lock(mutex());
  std::vector<at::Generator>& all = generators();
  size_t index = 0;
  while (index < all.size() && !(all[index] == generator)) ++index;
  if (index == all.size()) all.push_back(generator);
  return std::string(kName) + std::to_string(index);
}

bool names_generator(const std::string& text) { return text.starts_with(kName); }

at::Generator named_generator(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex());
  const size_t index = names_generator(name) ? std::stoul(name.substr(kName.size())) : generators().size();
  GL_CHECK(index < generators().size(), "no generator is called " + name);
  return generators()[index];
}

}  // namespace graphlift::torch_layer
