// Owns: see compiled_kernel.h.
#include "backends/cuda/compiled_kernel.h"

#include <Python.h>

#include <algorithm>
#include <unordered_map>

#include "backends/cuda/driver.h"
#include "backends/cuda/nvrtc.h"
#include "base/error.h"
#include "base/gil.h"
#include "base/ref.h"

namespace graphlift::cuda {
namespace {

std::string key_text(const Compilation& compilation) {
  return nvrtc_version() + " sm_" + std::to_string(compilation.architecture) + " no contraction\n" + compilation.text;
}

// graphlift.nvrtc keeps code on disk; what goes wrong there costs a compilation and no more.
void read_kept(Compilation* compilation) {
  const Ref module = Ref::steal(PyImport_ImportModule("graphlift.nvrtc"));
  const std::string key = key_text(*compilation);
  const Ref found =
      module
          ? Ref::steal(PyObject_CallMethod(module.get(), "read", "s#", key.data(), static_cast<Py_ssize_t>(key.size())))
          : Ref();
  if (found && PyBytes_Check(found.get()))
    compilation->code.assign(PyBytes_AS_STRING(found.get()), static_cast<size_t>(PyBytes_GET_SIZE(found.get())));
  PyErr_Clear();
}

void keep(const Compilation& compilation) {
  const Ref module = Ref::steal(PyImport_ImportModule("graphlift.nvrtc"));
  const std::string key = key_text(compilation);
  if (module)
    Ref::steal(PyObject_CallMethod(module.get(), "write", "s#y#", key.data(), static_cast<Py_ssize_t>(key.size()),
                                   compilation.code.data(), static_cast<Py_ssize_t>(compilation.code.size())));
  PyErr_Clear();
}

// From disk, else by NVRTC. With the GIL.
void obtain(std::vector<Compilation>* compilations) {
  std::vector<Compilation> missing;
  std::vector<size_t> places;
  for (size_t i = 0; i < compilations->size(); ++i) {
    read_kept(&(*compilations)[i]);
    if ((*compilations)[i].code.empty()) missing.push_back((*compilations)[i]), places.push_back(i);
  }
  if (missing.empty()) return;
  {
    const WithoutGil released;
    compile(&missing);
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    GL_CHECK(missing[i].error.empty(), "NVRTC refused a kernel: " + missing[i].error + "\n" + missing[i].text);
    keep(missing[i]);
    (*compilations)[places[i]] = std::move(missing[i]);
  }
}

// More than 48 KiB of shared memory have to be asked for, on each device. A GPU of another kind, which does not run the
// kernel, may not have them.
void allow_shared(void* function, int bytes) {
  constexpr int kMaxDynamicSharedBytes = 8;
  int devices = 0, allowed = 0, result = 0;
  check_driver(driver().cuDeviceGetCount(&devices), "counting GPUs");
  for (int i = 0; i < devices; ++i) {
    int handle = 0;
    check_driver(driver().cuDeviceGet(&handle, i), "a GPU");
    const int answer = driver().cuKernelSetAttribute(kMaxDynamicSharedBytes, bytes, function, handle);
    answer == 0 ? ++allowed : result = answer;
  }
  if (allowed == 0) check_driver(result, "shared memory");
}

std::unique_ptr<LoadedKernel> load(KernelSource source, const std::string& code) {
  void* library = nullptr;  // lives as long as the process
  check_driver(driver().cuLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), "loading");
  auto loaded = std::make_unique<LoadedKernel>();
  for (const KernelLaunch& launch : source.launches) {
    void* function = nullptr;
    check_driver(driver().cuLibraryGetKernel(&function, library, launch.name.c_str()), "finding a function");
    if (launch.shared > 0) allow_shared(function, launch.shared);
    loaded->functions.push_back(function);
  }
  loaded->source = std::move(source);
  loaded->source.text.clear();
  return loaded;
}

}  // namespace

CompiledKernel::CompiledKernel(codegen::Kernel kernel, std::vector<bool> by_value, const Target& target, bool parts)
    : kernel_(std::move(kernel)),
      by_value_(std::move(by_value)),
      target_(target),
      parts_(parts),
      reach_(cuda::reach(kernel_)) {
  usual_.wide = reach_.is_constant() && reach_.constant() >= kNarrowReach;
}

KernelSource CompiledKernel::emit(const Variant& variant) const {
  const Schedule schedule = schedule_kernel(kernel_, target_, variant);
  return parts_ ? emit_multi_kernel(kernel_, schedule, by_value_) : emit_kernel(kernel_, schedule, by_value_);
}

const LoadedKernel& CompiledKernel::variant(const Variant& variant) const {
  auto& place = loaded_[index(variant)];
  if (const LoadedKernel* found = place.load(std::memory_order_acquire)) return *found;
  // The GIL before the lock, in all threads.
  const WithGil held;
  std::vector<Compilation> compilations;
  KernelSource source = emit(variant);
  compilations.push_back({source.text, target_.architecture, {}, {}});
  obtain(&compilations);
  const std::lock_guard lock(mutex_);
  if (const LoadedKernel* found = place.load(std::memory_order_acquire)) return *found;
  place.store(load(std::move(source), compilations[0].code).release(), std::memory_order_release);
  return *place.load(std::memory_order_relaxed);
}

std::shared_ptr<const CompiledKernel> KernelBatch::add(const codegen::Kernel& kernel, const std::vector<bool>& by_value,
                                                       bool parts, const Tiling& tiling) {
  Target target = target_;
  target.tiling = tiling;
  // Held by the GIL.
  static auto* known = new std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>>;
  std::string key = print(kernel) + "sm_" + std::to_string(target_.architecture) + " " +
                    std::to_string(target_.processors) + " " + std::to_string(target_.shared_bytes) + " " +
                    tiling.str() + (parts ? " parts " : " ");
  for (const bool value : by_value) key += value ? 'v' : 'm';
  auto& entry = (*known)[key];
  if (!entry) entry = std::make_shared<CompiledKernel>(kernel, by_value, target, parts);
  added_.push_back(entry);
  return entry;
}

void KernelBatch::compile() {
  std::vector<Compilation> compilations;
  std::vector<const CompiledKernel*> kernels;
  std::vector<KernelSource> sources;
  for (const auto& kernel : added_) {
    if (kernel->loaded_[CompiledKernel::index(kernel->usual())].load()) continue;
    if (std::find(kernels.begin(), kernels.end(), kernel.get()) != kernels.end()) continue;
    kernels.push_back(kernel.get());
    sources.push_back(kernel->emit(kernel->usual()));
    compilations.push_back({sources.back().text, target_.architecture, {}, {}});
  }
  obtain(&compilations);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::lock_guard lock(kernels[i]->mutex_);
    auto& place = kernels[i]->loaded_[CompiledKernel::index(kernels[i]->usual())];
    if (!place.load()) place.store(load(std::move(sources[i]), compilations[i].code).release());
  }
}

std::vector<std::string> compiled_code(const std::vector<std::string>& texts, int architecture) {
  GL_CHECK(nvrtc_refusal().empty(), nvrtc_refusal());
  std::vector<Compilation> compilations;
  for (const std::string& text : texts) compilations.push_back({text, architecture, {}, {}});
  {
    const WithoutGil released;
    compile(&compilations);
  }
  std::vector<std::string> code;
  for (Compilation& compilation : compilations) {
    GL_CHECK(compilation.error.empty(), compilation.error + "\n" + compilation.text);
    code.push_back(std::move(compilation.code));
  }
  return code;
}

}  // namespace graphlift::cuda
