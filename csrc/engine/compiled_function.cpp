// Owns: see compiled_function.h.
#include "engine/compiled_function.h"

#include <structmember.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/error.h"
#include "capture/root.h"
#include "cpython/hook.h"
#include "engine/bind.h"
#include "engine/report.h"
#include "engine/run.h"

namespace graphlift::engine {

namespace {

struct CompiledFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;
  PyObject* weakrefs;
  std::unique_ptr<Owner> owner;
};

PyTypeObject* g_type = nullptr;

CompiledFunction* self_of(PyObject* object) { return reinterpret_cast<CompiledFunction*>(object); }

// A hit on a region that runs to the frame's return needs no frame. Null without an error: take the long way.
PyObject* frameless(CompiledFunction* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* function = reinterpret_cast<PyFunctionObject*>(self->function);
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  auto found = self->owner->codes.find(code);
  if (found == self->owner->codes.end() || found->second.given_up) return nullptr;
  auto at = found->second.units.find(0);
  if (at == found->second.units.end()) return nullptr;
  Objects locals(static_cast<size_t>(code->co_nlocalsplus));
  if (!bind_arguments(function, args, nargsf, kwnames, locals.data())) return nullptr;
  const guards::Roots roots{locals.data(), nullptr, function->func_globals, function->func_builtins, self->function};
  for (const RegionPtr& candidate : at->second.regions) {
    if (!candidate->returns || !candidate->guards || candidate->kind != Region::Kind::Graph) continue;
    Objects fetched(candidate->guards->fetch_count());
    Slots<int64_t, 16> symbols(candidate->guards->symbol_count());
    if (!candidate->guards->check(roots, fetched.data(), symbols.data())) continue;
    const RegionPtr region = candidate;  // the table may change while it runs
    ++counters().hits;
    ++counters().frameless_hits;
    ++region->hits;
    Exit exit;
    try {
      const auto ran = run_region(*region, fetched.data(), symbols.data(), &exit);
      if (ran == torch_layer::Ran::Untouched) {
        leave_error_to_program(code);
        self->owner->entry(code).units[0].note_stop(region);  // tables may have changed while it ran
        cpython::HookScope nobody(nullptr);
        return PyObject_Vectorcall(self->function, args, nargsf, kwnames);
      }
    } catch (const InternalError& error) {
      self->owner->entry(code).given_up = true;
      report_internal_error(code, error.what());
      return nullptr;
    }
    return exit.result.release();
  }
  return nullptr;
}

PyObject* call(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  CompiledFunction* self = self_of(object);
  if (capture::current_capture()) return PyObject_Vectorcall(self->function, args, nargsf, kwnames);
  if (PyObject* result = frameless(self, args, nargsf, kwnames)) return result;
  if (PyErr_Occurred()) return nullptr;
  Ref hold = Ref::borrow(object);
  Ref function = Ref::borrow(self->function);
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.get()));
  Runner runner(*self->owner, code);
  cpython::HookScope hook(&runner);
  return PyObject_Vectorcall(function.get(), args, nargsf, kwnames);
}

PyObject* bind_to(PyObject* self, PyObject* instance, PyObject*) {
  return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  CompiledFunction* self = self_of(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->function);
  Py_VISIT(self->dict);
  return self->owner ? self->owner->traverse(visit, arg) : 0;
}

int clear(PyObject* object) {
  CompiledFunction* self = self_of(object);
  if (self->owner) self->owner->clear();
  Py_CLEAR(self->dict);
  Py_CLEAR(self->function);
  return 0;
}

void dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  CompiledFunction* self = self_of(object);
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  clear(object);
  self->owner.~unique_ptr();
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* repr(PyObject* object) { return PyUnicode_FromFormat("<compiled %R>", self_of(object)->function); }

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledFunction, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledFunction, weakrefs), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledFunction, vectorcall), READONLY, nullptr},
    {}};

PyGetSetDef getset[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(bind_to)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {0, nullptr}};

PyType_Spec spec = {
    "graphlift._C.CompiledFunction", sizeof(CompiledFunction), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyTypeObject* compiled_function_type() {
  if (!g_type) g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return g_type;
}

Ref make_compiled_function(PyObject* function, Config config) {
  PyTypeObject* type = compiled_function_type();
  if (!type) return Ref();
  if (!PyFunction_Check(function)) {
    PyErr_Format(PyExc_TypeError, "a Python function is needed, not %.100s", Py_TYPE(function)->tp_name);
    return Ref();
  }
  Ref made = Ref::steal(type->tp_alloc(type, 0));
  if (!made) return made;
  CompiledFunction* self = self_of(made.get());
  self->vectorcall = call;
  self->function = Py_NewRef(function);
  self->dict = PyDict_New();
  if (!self->dict || PyDict_SetItemString(self->dict, "__wrapped__", function) < 0) return Ref();
  new (&self->owner) std::unique_ptr<Owner>(std::make_unique<Owner>(std::move(config)));
  return made;
}

double guard_seconds(PyObject* compiled, PyObject* const* args, size_t nargs, int batches, int count) {
  if (!wrapped_function(compiled)) return -1;
  CompiledFunction* self = self_of(compiled);
  auto* function = reinterpret_cast<PyFunctionObject*>(self->function);
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  Objects locals(static_cast<size_t>(code->co_nlocalsplus));
  if (!bind_arguments(function, args, nargs, nullptr, locals.data())) return -1;
  const guards::Roots roots{locals.data(), nullptr, function->func_globals, function->func_builtins, self->function};
  auto holds = [&](const Region& region) {
    Objects fetched(region.guards->fetch_count());
    Slots<int64_t, 16> symbols(region.guards->symbol_count());
    return region.guards->check(roots, fetched.data(), symbols.data());
  };
  const std::vector<RegionPtr> regions = self->owner->entry(code).units[0].regions;
  const auto found = std::find_if(regions.begin(), regions.end(),
                                  [&](const RegionPtr& region) { return region->guards && holds(*region); });
  if (found == regions.end()) return -1;
  double least = std::numeric_limits<double>::infinity();
  for (int batch = 0; batch < batches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) holds(**found);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    least = std::min(least, taken.count() / count);
  }
  return least;
}

PyObject* wrapped_function(PyObject* callable) {
  return g_type && Py_IS_TYPE(callable, g_type) ? self_of(callable)->function : nullptr;
}

}  // namespace graphlift::engine
