// Owns: see nvrtc.h.
#include "backends/cuda/nvrtc.h"

#include <Python.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "base/once.h"
#include "base/ref.h"

namespace graphlift::cuda {
namespace {

#define GRAPHLIFT_NVRTC(FUNCTION)                                                                               \
  FUNCTION(nvrtcVersion, (int*, int*))                                                                          \
  FUNCTION(nvrtcGetNumSupportedArchs, (int*))                                                                   \
  FUNCTION(nvrtcGetSupportedArchs, (int*))                                                                      \
  FUNCTION(nvrtcCreateProgram, (void**, const char*, const char*, int, const char* const*, const char* const*)) \
  FUNCTION(nvrtcCompileProgram, (void*, int, const char* const*))                                               \
  FUNCTION(nvrtcGetProgramLogSize, (void*, size_t*))                                                            \
  FUNCTION(nvrtcGetProgramLog, (void*, char*))                                                                  \
  FUNCTION(nvrtcGetCUBINSize, (void*, size_t*))                                                                 \
  FUNCTION(nvrtcGetCUBIN, (void*, char*))                                                                       \
  FUNCTION(nvrtcGetPTXSize, (void*, size_t*))                                                                   \
  FUNCTION(nvrtcGetPTX, (void*, char*))                                                                         \
  FUNCTION(nvrtcDestroyProgram, (void**))

struct Nvrtc {
#define FUNCTION(name, parameters) int(*name) parameters = nullptr;
  GRAPHLIFT_NVRTC(FUNCTION)
#undef FUNCTION
  std::vector<int> architectures;
  std::string version;
  std::string refusal;
};

// What the process has loaded already comes first: torch's own. What the loader's path has comes last.
constexpr const char* kNvrtcNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
constexpr unsigned kMostCompilers = 16;

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  const Ref module = Ref::steal(PyImport_ImportModule("graphlift.nvrtc"));
  const Ref list = module ? Ref::steal(PyObject_CallMethod(module.get(), "candidates", nullptr)) : Ref();
  const Ref iterator = list ? Ref::steal(PyObject_GetIter(list.get())) : Ref();
  while (iterator) {
    const Ref path = Ref::steal(PyIter_Next(iterator.get()));
    const char* text = path ? PyUnicode_AsUTF8(path.get()) : nullptr;
    if (!text) break;
    paths.emplace_back(text);
  }
  PyErr_Clear();
  return paths;
}

void* open_nvrtc() {
  for (const char* name : kNvrtcNames)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  for (const std::string& path : candidates())
    if (void* library = dlopen(path.c_str(), RTLD_NOW)) return library;
  for (const char* name : kNvrtcNames)
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  return nullptr;
}

// NVRTC asks for its builtins by name when it compiles first. Where nothing says in which folder they are, as in a
// wheel of NVRTC alone, they have to be there by then.
void open_builtins(void* nvrtc) {
  Dl_info where;
  if (dladdr(dlsym(nvrtc, "nvrtcVersion"), &where) == 0 || !where.dli_fname) return;
  std::error_code none;
  const auto folder = std::filesystem::path(where.dli_fname).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().filename().string().starts_with("libnvrtc-builtins.so")) dlopen(entry.path().c_str(), RTLD_NOW);
}

std::string load(Nvrtc* nvrtc) {
  void* library = open_nvrtc();
  if (!library) return "NVRTC, CUDA's run-time compiler, is not installed beside torch";
  open_builtins(library);
  bool whole = true;
#define FUNCTION(name, parameters)                                          \
  nvrtc->name = reinterpret_cast<int(*) parameters>(dlsym(library, #name)); \
  whole = whole && nvrtc->name;
  GRAPHLIFT_NVRTC(FUNCTION)
#undef FUNCTION
  if (!whole) return "this NVRTC is too old";
  int major = 0, minor = 0, count = 0;
  nvrtc->nvrtcVersion(&major, &minor);
  nvrtc->version = std::to_string(major) + "." + std::to_string(minor);
  nvrtc->nvrtcGetNumSupportedArchs(&count);
  nvrtc->architectures.resize(static_cast<size_t>(count));
  nvrtc->nvrtcGetSupportedArchs(nvrtc->architectures.data());
  return nvrtc->architectures.empty() ? "this NVRTC knows no GPU" : "";
}

const Nvrtc& library() {
  static constinit Once<Nvrtc> once;
  return once.get([] {
    Nvrtc made;
    made.refusal = load(&made);
    return made;
  });
}

std::string log_of(void* program) {
  size_t bytes = 0;
  if (library().nvrtcGetProgramLogSize(program, &bytes) != 0 || bytes == 0) return "no words";
  std::string log(bytes, '\0');
  library().nvrtcGetProgramLog(program, log.data());
  return log;
}

std::string code_of(void* program, bool cubin) {
  const Nvrtc& nvrtc = library();
  size_t bytes = 0;
  (cubin ? nvrtc.nvrtcGetCUBINSize : nvrtc.nvrtcGetPTXSize)(program, &bytes);
  std::string code(bytes, '\0');
  (cubin ? nvrtc.nvrtcGetCUBIN : nvrtc.nvrtcGetPTX)(program, code.data());
  return code;
}

void compile_one(Compilation* compilation) {
  const Nvrtc& nvrtc = library();
  const auto& known = nvrtc.architectures;
  const bool exact = std::find(known.begin(), known.end(), compilation->architecture) != known.end();
  const std::string target = "--gpu-architecture=" + std::string(exact ? "sm_" : "compute_") +
                             std::to_string(exact ? compilation->architecture : known.back());
  // A value that is computed again in another kernel (in backward, where it is not saved) has to be the same number.
  const char* options[] = {target.c_str(), "--std=c++17", "-w", "--fmad=false"};
  void* program = nullptr;
  if (nvrtc.nvrtcCreateProgram(&program, compilation->text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) {
    compilation->error = "a program can't be made";
    return;
  }
  if (nvrtc.nvrtcCompileProgram(program, static_cast<int>(std::size(options)), options) != 0)
    compilation->error = log_of(program);
  else
    compilation->code = code_of(program, exact);
  nvrtc.nvrtcDestroyProgram(&program);
}

}  // namespace

const std::string& nvrtc_refusal() { return library().refusal; }
std::string nvrtc_version() { return library().version; }

void compile(std::vector<Compilation>* compilations) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < compilations->size(); i = next++) compile_one(&(*compilations)[i]);
  };
  const size_t most =
      std::min<size_t>(compilations->size(), std::clamp(std::thread::hardware_concurrency(), 1u, kMostCompilers));
  std::vector<std::thread> threads;
  for (size_t i = 1; i < most; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace graphlift::cuda
