// Owns: where oneDNN's library is looked for, and whether one that was found may be used beside torch.
#include "backends/cpu/onednn/library.h"

#include <ATen/Parallel.h>
#include <Python.h>
#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/gil.h"
#include "base/log.h"
#include "base/once.h"
#include "base/text.h"

namespace graphlift::cpu::onednn {
namespace {

constexpr const char* kFile = "libdnnl.so.3";
constexpr const char* kHint = "pip install onednn-cpu-gomp";

struct Search {
  Library library;
  std::string why;  // empty: found
};

// An attribute of a module that is a string; empty otherwise. With the GIL.
std::string python_string(const char* module_name, const char* attribute) {
  std::string out;
  PyObject* module = PyImport_ImportModule(module_name);
  PyObject* value = module ? PyObject_GetAttrString(module, attribute) : nullptr;
  if (value && PyUnicode_Check(value)) {
    if (const char* text = PyUnicode_AsUTF8(value)) out = text;
  }
  Py_XDECREF(value);
  Py_XDECREF(module);
  PyErr_Clear();
  return out;
}

// The environment that the interpreter runs in, the user's own packages, then wherever the loader looks.
std::vector<std::string> places() {
  std::vector<std::string> out;
  if (Py_IsInitialized()) {
    WithGil gil;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    for (const auto& [module, attribute] :
         {std::pair{"sys", "prefix"}, {"sys", "base_prefix"}, {"site", "USER_BASE"}}) {
      const std::string prefix = python_string(module, attribute);
      if (!prefix.empty()) out.push_back(cat(prefix, "/lib/", kFile));
    }
    PyErr_Restore(type, value, traceback);
  }
  out.push_back(kFile);
  return out;
}

// Two OpenMP runtimes in one process would each keep their threads, and torch.set_num_threads would reach one of them.
bool shares_openmp_with_torch(void* handle) {
  Dl_info torch_file{};
  if (dladdr(reinterpret_cast<void*>(&at::get_num_threads), &torch_file) == 0) return false;
  void* torch = dlopen(torch_file.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!torch) return false;
  const bool same = dlsym(torch, "omp_get_max_threads") == dlsym(handle, "omp_get_max_threads");
  dlclose(torch);
  return same;
}

std::string fill_table(void* handle, Library* library) {
#define FUNCTION(name)                                                             \
  library->name = reinterpret_cast<decltype(library->name)>(dlsym(handle, #name)); \
  if (!library->name) return cat("it has no function ", #name);
  GRAPHLIFT_ONEDNN_FUNCTIONS(FUNCTION)
#undef FUNCTION
  const dnnl_version_t* version = library->dnnl_version();
  if (version->major != DNNL_VERSION_MAJOR || version->minor < DNNL_VERSION_MINOR)
    return cat("it is version ", version->major, ".", version->minor, ", built against was ", DNNL_VERSION_MAJOR, ".",
               DNNL_VERSION_MINOR);
  if (version->cpu_runtime != DNNL_RUNTIME_OMP) return "its threads are not OpenMP's";
  if (!shares_openmp_with_torch(handle)) return "its OpenMP runtime is not the one that torch runs on";
  if (library->dnnl_engine_create(&library->engine, dnnl_cpu, 0) != dnnl_success) return "it has no CPU engine";
  return {};
}

Search search() {
  Search out;
  const char* wanted = std::getenv("GRAPHLIFT_ONEDNN");
  if (wanted && std::string(wanted) == "0") {
    out.why = "oneDNN is switched off by GRAPHLIFT_ONEDNN=0";
    return out;
  }
  const std::vector<std::string> files = wanted && *wanted ? std::vector<std::string>{wanted} : places();
  for (const std::string& file : files) {
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) continue;
    const std::string fault = fill_table(handle, &out.library);
    if (fault.empty()) {
      out.library.path = file;
      out.why.clear();
      return out;
    }
    out.why = cat("oneDNN in ", file, " is not used: ", fault);
    dlclose(handle);
  }
  if (out.why.empty()) out.why = cat("oneDNN (", kFile, ") is not installed: ", kHint);
  return out;
}

}  // namespace

const Library* library(std::string* why) {
  static constinit Once<Search> once;
  const Search& found = once.get([] {
    Search out = search();
    if (!out.why.empty()) log(Artifact::PerfHints, cat(out.why, "; torch's kernels are used for contractions"));
    return out;
  });
  if (found.why.empty()) return &found.library;
  if (why) *why = found.why;
  return nullptr;
}

void check(dnnl_status_t status, const char* doing) {
  GL_CHECK(status == dnnl_success, cat("oneDNN failed with status ", static_cast<int>(status), " at ", doing));
}

void Destroy::operator()(dnnl_memory_desc_t it) const { library()->dnnl_memory_desc_destroy(it); }
void Destroy::operator()(dnnl_primitive_attr_t it) const { library()->dnnl_primitive_attr_destroy(it); }
void Destroy::operator()(dnnl_post_ops_t it) const { library()->dnnl_post_ops_destroy(it); }
void Destroy::operator()(dnnl_primitive_desc_t it) const { library()->dnnl_primitive_desc_destroy(it); }
void Destroy::operator()(dnnl_primitive_t it) const { library()->dnnl_primitive_destroy(it); }
void Destroy::operator()(dnnl_memory_t it) const { library()->dnnl_memory_destroy(it); }
void Destroy::operator()(dnnl_stream_t it) const { library()->dnnl_stream_destroy(it); }

}  // namespace graphlift::cpu::onednn
