// Owns: see jit.h.
#include "backends/cpu/jit.h"

#include <Python.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>

#include "backends/cpu/mapped_code.h"
#include "base/error.h"
#include "base/once.h"
#include "base/ref.h"

namespace graphlift::cpu {
namespace {

std::string pending_error() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref owned_type = Ref::steal(type), owned_value = Ref::steal(value), owned_traceback = Ref::steal(traceback);
  const Ref text = Ref::steal(PyObject_Str(value ? value : Py_None));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string message = utf8 ? utf8 : "unknown";
  PyErr_Clear();
  return message;
}

// graphlift.llvm, or null with `refusal` set.
struct Host {
  Ref module;
  Target target;
  std::string refusal;
};

bool read_target(Host* host) {
  const Ref answer = Ref::steal(PyObject_CallMethod(host->module.get(), "describe_target", nullptr));
  if (!answer) return false;
  PyObject* names = nullptr;
  if (!PyArg_ParseTuple(answer.get(), "iO", &host->target.vector_bytes, &names)) return false;
  const Ref iterator = Ref::steal(PyObject_GetIter(names));
  if (!iterator) return false;
  while (const Ref name = Ref::steal(PyIter_Next(iterator.get()))) {
    const char* text = PyUnicode_AsUTF8(name.get());
    if (!text) return false;
    host->target.functions.insert(text);
  }
  return !PyErr_Occurred();
}

const Host& host() {
  static constinit Once<Host> once;
  return once.get([] {
    Host made;
    made.module = Ref::steal(PyImport_ImportModule("graphlift.llvm"));
    if (!made.module || !read_target(&made)) made.refusal = pending_error();
    return made;
  });
}

using Clock = std::chrono::steady_clock;

// Since the compiler rested; held by the GIL.
Clock::duration compiling{};

std::string all_texts(const std::vector<KernelCode>& codes) {
  std::string text;
  for (const KernelCode& code : codes) text += "\n" + code.text;
  return text;
}

// In the order of `codes`, whose names differ.
std::vector<KernelFunction> compile_texts(const std::vector<KernelCode>& codes) {
  const Clock::time_point start = Clock::now();
  const Ref names = Ref::steal(PyList_New(0)), texts = Ref::steal(PyList_New(0));
  bool built = names && texts;
  auto append = [&](PyObject* list, const std::string& text) {
    const Ref made = Ref::steal(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
    built = built && made && PyList_Append(list, made.get()) == 0;
  };
  for (const KernelCode& code : codes) append(names.get(), code.name), append(texts.get(), code.text);
  Ref addresses;
  if (built)
    addresses = Ref::steal(PyObject_CallMethod(host().module.get(), "compile", "OO", names.get(), texts.get()));
  compiling += Clock::now() - start;
  if (!addresses) internal_error(__FILE__, __LINE__, "LLVM refused kernels: " + pending_error() + all_texts(codes));
  std::vector<KernelFunction> functions;
  for (size_t i = 0; i < codes.size(); ++i)
    functions.push_back(
        reinterpret_cast<KernelFunction>(PyLong_AsSize_t(PyList_GetItem(addresses.get(), static_cast<Py_ssize_t>(i)))));
  return functions;
}

}  // namespace

const Target& host_target() { return host().target; }

const std::string& jit_refusal() { return host().refusal; }

void rest_compiler() {
  constexpr std::chrono::milliseconds kReadingAgain{3};
  if (compiling < 8 * kReadingAgain) return;
  compiling = {};
  for (const char* library : {"libllvmlite.", "libdnnl."}) unmap_code(library);
}

namespace {

// By content; held by the GIL.
using Compiled = std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>>;
Compiled& compiled() {
  static auto* kernels = new Compiled;
  return *kernels;
}

std::shared_ptr<CompiledKernel> with_function(KernelCode&& code, KernelFunction function) {
  auto made = std::make_shared<CompiledKernel>();
  made->function = function;
  made->numbers = std::move(code.numbers);
  made->stages = std::move(code.stages);
  made->partial_words = code.partial_words;
  made->element_work = code.element_work;
  return made;
}

// Kernels that are to be compiled as one module.
class Batch {
 public:
  void add(const codegen::Kernel& kernel) {
    const std::string key = print(kernel);
    if (compiled().count(key) || std::find(keys_.begin(), keys_.end(), key) != keys_.end()) return;
    // Named by content, so that the same kernel is the same text in all graphs.
    std::string name = "kernel_" + std::to_string(std::hash<std::string>()(key));
    while (!names_.insert(name).second) name += "_";
    codes_.push_back(emit_kernel(kernel, schedule_kernel(kernel, host_target()), host_target(), name));
    keys_.push_back(key);
  }

  void compile() {
    if (codes_.empty()) return;
    const std::vector<KernelFunction> functions = compile_texts(codes_);
    for (size_t i = 0; i < codes_.size(); ++i)
      compiled().emplace(keys_[i], with_function(std::move(codes_[i]), functions[i]));
  }

 private:
  std::vector<std::string> keys_;
  std::set<std::string> names_;
  std::vector<KernelCode> codes_;
};

// Fewer elements are worth code of their own.
constexpr int64_t kLeastVariedSize = 256;

std::shared_ptr<const CompiledKernel> with_size(const CompiledKernel& any, int64_t size) {
  auto made = std::make_shared<CompiledKernel>(any);
  const std::span<const int64_t> symbols(&size, 1);
  for (ir::Sym& number : made->numbers) number = number.eval(symbols);
  for (KernelStage& stage : made->stages) stage = {stage.units.eval(symbols), stage.unit_elements.eval(symbols)};
  return made;
}

// Code that `kernel` shares with others of its kind, of any size: the size that each kind had first has its own, so
// that an optimizer's many shapes cost two.
std::optional<codegen::Kernel> shared_code(const codegen::Kernel& kernel) {
  auto any = codegen::of_any_size(kernel);
  const int64_t size = any ? kernel.axes[0].extent.constant() : 0;
  if (size < kLeastVariedSize) return std::nullopt;
  static auto* first_sizes = new std::unordered_map<std::string, int64_t>;
  if (first_sizes->emplace(print(*any), size).first->second == size) return std::nullopt;
  return any;
}

}  // namespace

void compile_kernels(std::span<const codegen::Kernel* const> kernels) {
  Batch batch;
  for (const codegen::Kernel* kernel : kernels) {
    const auto any = shared_code(*kernel);
    batch.add(any ? *any : *kernel);
  }
  batch.compile();
}

std::shared_ptr<const CompiledKernel> compile_kernel(const codegen::Kernel& kernel) {
  const auto any = shared_code(kernel);
  const codegen::Kernel& code = any ? *any : kernel;
  const std::string key = print(code);
  auto found = compiled().find(key);
  if (found == compiled().end()) {
    Batch batch;
    batch.add(code);
    batch.compile();
    found = compiled().find(key);
  }
  return any ? with_size(*found->second, kernel.axes[0].extent.constant()) : found->second;
}

}  // namespace graphlift::cpu
