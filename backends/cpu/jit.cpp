// Owns: see jit.h.
#include "backends/cpu/jit.h"

#include <Python.h>

#include <unordered_map>

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

KernelFunction compile_text(const KernelCode& code) {
  const Ref address =
      Ref::steal(PyObject_CallMethod(host().module.get(), "compile", "ss", code.name.c_str(), code.text.c_str()));
  if (!address) internal_error(__FILE__, __LINE__, "LLVM refused a kernel: " + pending_error() + "\n" + code.text);
  return reinterpret_cast<KernelFunction>(PyLong_AsSize_t(address.get()));
}

}  // namespace

const Target& host_target() { return host().target; }

const std::string& jit_refusal() { return host().refusal; }

std::shared_ptr<const CompiledKernel> compile_kernel(const codegen::Kernel& kernel) {
  // Held by the GIL.
  static auto* compiled = new std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>>;
  const std::string key = print(kernel);
  if (const auto found = compiled->find(key); found != compiled->end()) return found->second;
  KernelCode code = emit_kernel(kernel, schedule_kernel(kernel, host_target()), host_target(), "kernel");
  auto made = std::make_shared<CompiledKernel>();
  made->function = compile_text(code);
  made->numbers = std::move(code.numbers);
  made->units = code.units;
  made->unit_elements = code.unit_elements;
  made->element_work = code.element_work;
  return compiled->emplace(key, std::move(made)).first->second;
}

}  // namespace graphlift::cpu
