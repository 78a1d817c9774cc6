// Owns: see jit.h.
#include "backends/cpu/jit.h"

#include <Python.h>

#include <chrono>
#include <optional>
#include <span>
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

KernelFunction compile_text(const KernelCode& code) {
  const Clock::time_point start = Clock::now();
  const Ref address =
      Ref::steal(PyObject_CallMethod(host().module.get(), "compile", "ss", code.name.c_str(), code.text.c_str()));
  compiling += Clock::now() - start;
  if (!address) internal_error(__FILE__, __LINE__, "LLVM refused a kernel: " + pending_error() + "\n" + code.text);
  return reinterpret_cast<KernelFunction>(PyLong_AsSize_t(address.get()));
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

std::shared_ptr<const CompiledKernel> compile_as_it_is(const codegen::Kernel& kernel) {
  // Held by the GIL.
  static auto* compiled = new std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>>;
  const std::string key = print(kernel);
  if (const auto found = compiled->find(key); found != compiled->end()) return found->second;
  KernelCode code = emit_kernel(kernel, schedule_kernel(kernel, host_target()), host_target(), "kernel");
  auto made = std::make_shared<CompiledKernel>();
  made->function = compile_text(code);
  made->numbers = std::move(code.numbers);
  made->stages = std::move(code.stages);
  made->partial_words = code.partial_words;
  made->element_work = code.element_work;
  return compiled->emplace(key, std::move(made)).first->second;
}

// Fewer elements are worth code of their own.
constexpr int64_t kLeastVariedSize = 256;

std::shared_ptr<const CompiledKernel> with_size(const CompiledKernel& any, int64_t size) {
  auto made = std::make_shared<CompiledKernel>(any);
  const std::span<const int64_t> symbols(&size, 1);
  for (ir::Sym& number : made->numbers) number = number.eval(symbols);
  for (KernelStage& stage : made->stages) stage = {stage.units.eval(symbols), stage.unit_elements.eval(symbols)};
  return made;
}

}  // namespace

std::shared_ptr<const CompiledKernel> compile_kernel(const codegen::Kernel& kernel) {
  const auto any = codegen::of_any_size(kernel);
  const int64_t size = any ? kernel.axes[0].extent.constant() : 0;
  if (size < kLeastVariedSize) return compile_as_it_is(kernel);
  // The size that each kernel had first; others share one code, so that an optimizer's many shapes cost two.
  static auto* first_sizes = new std::unordered_map<std::string, int64_t>;
  if (first_sizes->emplace(print(*any), size).first->second == size) return compile_as_it_is(kernel);
  return with_size(*compile_as_it_is(*any), size);
}

}  // namespace graphlift::cpu
