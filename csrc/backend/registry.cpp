// Owns: the process's backends by name. They are registered while modules load and live to the end.
#include <map>
#include <mutex>

#include "backend/backend.h"
#include "base/error.h"

namespace graphlift::backend {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Backend>> backends;
};

Registry& registry() {
  static auto* instance = new Registry;  // regions may outlive static destructors
  return *instance;
}

}  // namespace

void register_backend(std::unique_ptr<Backend> backend) {
  std::lock_guard lock(registry().mutex);
  std::string name = backend->name();
  const bool added = registry().backends.emplace(name, std::move(backend)).second;
  GL_CHECK(added, "backend registered twice: " + name);
}

const Backend* find_backend(const std::string& name) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().backends.find(name);
  return found == registry().backends.end() ? nullptr : found->second.get();
}

std::vector<std::string> backend_names() {
  std::lock_guard lock(registry().mutex);
  std::vector<std::string> names;
  for (const auto& [name, backend] : registry().backends) names.push_back(name);
  return names;
}

}  // namespace graphlift::backend
