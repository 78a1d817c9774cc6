// Owns: the backends of this process, by name.
// Must not: choose one for the user.
#include <algorithm>
#include <map>
#include <mutex>

#include "backend/backend.h"
#include "base/error.h"

namespace graphlift::backend {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Backend>> backends;
};

// Never destroyed: compiled graphs of other static objects may still point into a backend at exit.
Registry& registry() {
  static auto* registry = new Registry;
  return *registry;
}

std::atomic<void (*)(const at::Tensor&)> silent_write_listener = nullptr;

}  // namespace

void note_silent_write(const at::Tensor& tensor) {
  if (auto* call = silent_write_listener.load(std::memory_order_acquire)) call(tensor);
}

void on_silent_write(void (*call)(const at::Tensor& tensor)) {
  silent_write_listener.store(call, std::memory_order_release);
}

Counters& counters() {
  static Counters counters;
  return counters;
}

void register_backend(std::unique_ptr<Backend> backend) {
  GL_CHECK(backend && !backend->name().empty(), "a backend without a name");
  std::string name = backend->name();
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  bool added = all.backends.try_emplace(name, std::move(backend)).second;
  GL_CHECK(added, "backend \"" + name + "\" is registered already");
}

std::shared_ptr<const Backend> find_backend(const std::string& name) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.backends.find(name);
  return found == all.backends.end() ? nullptr : found->second;
}

std::vector<std::string> backend_names() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& [name, backend] : all.backends) names.push_back(name);
  return names;
}

}  // namespace graphlift::backend
