// Owns: callable objects of known C types: partials, weak references, caches, operators of torch.ops,
// operator.itemgetter and the like. Must not: know classes or methods (c_calls.cpp).
#include <algorithm>
#include <string_view>

#include "base/once.h"
#include "capture/arrays.h"
#include "capture/attributes.h"
#include "capture/c_calls.h"
#include "capture/calls.h"
#include "capture/computed_arrays.h"
#include "capture/containers.h"
#include "capture/deferred.h"
#include "cpython/hook.h"
#include "cpython/imported.h"
#include "cpython/lru_cache.h"
#include "cpython/raw_dict.h"
#include "guards/constant.h"

namespace graphlift::capture {

using guards::GuardKind;
using guards::OriginId;
using guards::OriginKind;

namespace {

bool is_partial(PyObject* object) {
  static constinit Once<PyObject*> once;
  PyObject* type = once.get([] { return cpython::imported("functools", "partial").release(); });
  return type && Py_IS_TYPE(object, reinterpret_cast<PyTypeObject*>(type));
}

Ref partial_part(Capture& capture, PyObject* partial, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(partial, name));
  Outside* outside = capture.objects.find(partial);
  if (!value || !outside) return value;
  Ref key = Ref::steal(PyUnicode_InternFromString(name));
  return capture.admit(value.get(), capture.origins().child(outside->origin, OriginKind::PartialPart, key.get()));
}

Ref call_partial(Capture& capture, const CallArgs& call) {
  Ref function = partial_part(capture, call.callable, "func");
  Ref args = function ? partial_part(capture, call.callable, "args") : Ref();
  args = args ? for_c_code(capture, args.get()) : args;
  Ref keywords = args ? partial_part(capture, call.callable, "keywords") : Ref();
  keywords = keywords ? for_c_code(capture, keywords.get()) : keywords;
  if (!keywords) return keywords;
  Ref given = Ref::steal(PyTuple_New(call.nargs));
  if (!given) return given;
  for (Py_ssize_t i = 0; i < call.nargs; ++i) PyTuple_SET_ITEM(given.get(), i, Py_NewRef(call.args[i]));
  Ref all = Ref::steal(PySequence_Concat(args.get(), given.get()));
  Ref merged = all ? Ref::steal(PyDict_Copy(keywords.get())) : Ref();
  if (!merged) return merged;
  const Py_ssize_t named = call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i)
    if (PyDict_SetItem(merged.get(), PyTuple_GET_ITEM(call.kwnames, i), call.args[call.nargs + i]) < 0) return Ref();
  return call_ex(capture, function.get(), all.get(), merged.get());
}

// logger.warning_once and the like: the cache is what makes them once.
bool says_once(PyObject* function) {
  Ref name = Ref::steal(PyObject_GetAttrString(function, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  return text && std::string_view(text).ends_with("_once");
}

// The program may have given up its last reference to an object, which lives on here.
bool may_have_died(Capture& capture, PyObject* reference, PyObject* target) {
  const Outside* known = capture.objects.find(target);
  if (!known && capture.is_outside(reference)) return capture.dropped;
  const Py_ssize_t of_torch = torch_layer::is_stand_in(target);  // a tensor that only the recording has
  if (!known)
    return Py_REFCNT(target) - of_torch <= std::count_if(capture.keep_alive.begin(), capture.keep_alive.end(),
                                                         [&](const Ref& kept) { return kept.get() == target; });
  if (known->origin == guards::kNoOrigin) return false;
  const guards::Origin& origin = capture.origins().at(known->origin);
  const cpython::Frame& root = capture.frames.front();
  return capture.dropped || (origin.kind == OriginKind::Local && root.locals()[origin.index] != target);
}

// The referent is found again through the weakref; one that died is None.
Ref call_weakref(Capture& capture, const CallArgs& call) {
  Outside* outside = capture.objects.find(call.callable);
  PyObject* target = cpython::weakref_target(call.callable);
  if (target && may_have_died(capture, call.callable, target))
    return break_here(capture, "unknown_callable", "a weak reference behind changes of what held its object");
  if (!outside || call.nargs > 0 || call.kwnames)
    return Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
  const OriginId origin = capture.origins().child(outside->origin, OriginKind::WeakTarget);
  if (target) return capture.admit(target, origin);
  capture.guards.add(origin, GuardKind::Missing);
  return Ref::borrow(Py_None);
}

// torch.ops.<namespace>.<name> and its overloads. What runs in it is torch's own, and of a custom operator the Python
// code that torch.library was given to run without data.
Ref call_operator_object(Capture& capture, const CallArgs& call) {
  if (Outside* outside = capture.objects.find(call.callable))
    capture.guards.add(outside->origin, GuardKind::Is, call.callable);
  const std::string unknown = torch_layer::unknown_composition(call.callable);
  if (!unknown.empty()) return break_here(capture, "no_fake", unknown);
  Ref function = Ref::steal(PyObject_GetAttrString(call.callable, "_op"));
  if (!function) return function;
  cpython::HookScope nobody(nullptr);
  return call_tensor_function(capture, {function.get(), call.args, call.nargs, call.kwnames});
}

// What the cache holds for a call, found again in the cache; null without an error: nothing, or nothing that a guard
// can find.
Ref cached_answer(Capture& capture, const CallArgs& call) {
  PyObject* cache = cpython::lru_cache_dict(call.callable);
  Ref key = cache ? cpython::lru_cache_key(call.callable, call.args, call.nargs, call.kwnames) : Ref();
  if (!key || !is_guardable_key(key.get())) return Ref();
  PyObject* entry = PyDict_GetItemWithError(cache, key.get());
  if (!entry) return Ref();
  // torch's own sets of functions have no guard: making them again has none either.
  PyObject* known = cpython::lru_link_result(entry);
  const bool set = PyAnySet_Check(known ? known : entry);
  Ref wrapped = set ? Ref::steal(PyObject_GetAttrString(call.callable, "__wrapped__")) : Ref();
  if (wrapped && torch_layer::is_trusted_function(wrapped.get())) return Ref();
  const OriginId origin = capture.origins().child(capture.origin_of(call.callable), OriginKind::CacheDict);
  capture.know(cache, origin);
  Ref found = dict_get(capture, cache, key.get());
  PyObject* result = found ? cpython::lru_link_result(found.get()) : nullptr;
  if (!result) return found;
  return capture.admit(result, capture.origins().child(capture.origin_of(found.get()), OriginKind::CacheEntry));
}

// A cache has no answer to a call, or the one that its function gave.
class CacheGives final : public guards::LeafCheck {
 public:
  CacheGives(PyObject* cache, Ref key, PyObject* answer)
      : cache_(Ref::borrow(cache)),
        key_(std::move(key)),
        hash_(PyObject_Hash(key_.get())),
        answer_(Ref::borrow(answer)) {}
  bool check(PyObject*, int64_t*) const override {
    PyObject* kept = cpython::lru_cache_dict(cache_.get());
    PyObject* entry = nullptr;
    const cpython::Answer found =
        kept ? cpython::raw_dict_lookup(kept, key_.get(), hash_, &entry) : cpython::Answer::Unknown;
    if (found != cpython::Answer::Yes) return found == cpython::Answer::No;
    PyObject* linked = cpython::lru_link_result(entry);
    return guards::constants_equal(linked ? linked : entry, answer_.get());
  }
  std::string text(const std::string&) const override {
    return describe(cache_.get()) + " @" + std::to_string(reinterpret_cast<uintptr_t>(cache_.get())) + " has for " +
           guards::describe(key_.get()) + " no other answer than " + guards::describe(answer_.get());
  }
  std::string explain(PyObject*) const override { return describe(cache_.get()) + " has another answer"; }
  int cost() const override { return 2; }

 private:
  Ref cache_, key_;
  Py_hash_t hash_;
  Ref answer_;
};

// What the builtin that fills a cache behind the region is given (cpython/lru_cache.h).
using Filling = std::vector<Ref>;
enum Part : size_t { kCache, kAnswer, kNames, kNested, kArguments };

// Empty: no cache that is filled so.
Filling filling_of(const CallArgs& call) {
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  if (!cpython::lru_cache_dict(call.callable)) return {};
  Filling filling;
  for (PyObject* part : {call.callable, Py_None, call.kwnames ? call.kwnames : Py_None, Py_None})
    filling.push_back(Ref::borrow(part));
  for (Py_ssize_t i = 0; i < total; ++i) {
    if (!is_value_constant(call.args[i]) && !torch_layer::is_sym_scalar(call.args[i])) return {};
    filling.push_back(Ref::borrow(call.args[i]));
  }
  return filling;
}

bool has_symbols(const Filling& filling) {
  return std::any_of(filling.begin() + kArguments, filling.end(),
                     [](const Ref& part) { return torch_layer::is_sym_scalar(part.get()); });
}

// Numbers, that may vary, and tuples of them.
bool is_answer(PyObject* object) {
  if (is_fixed(object) || torch_layer::is_sym_scalar(object)) return true;
  bool all = PyTuple_CheckExact(object);
  for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(object); ++i) all = is_answer(PyTuple_GET_ITEM(object, i));
  return all;
}

// Without a call: numbers that vary are the same where one object is.
bool same_argument(PyObject* a, PyObject* b) {
  if (a == b) return true;
  return !torch_layer::is_sym_scalar(a) && !torch_layer::is_sym_scalar(b) && guards::constants_equal(a, b);
}

// The answer that a filling, or one nested in it, has for the same call.
PyObject* answer_in(PyObject* const* parts, size_t count, const Filling& asked) {
  for (Py_ssize_t i = 0; parts[kNested] != Py_None && i < PyTuple_GET_SIZE(parts[kNested]); ++i) {
    PyObject* nested = PyTuple_GET_ITEM(parts[kNested], i);
    PyObject* found = answer_in(&PyTuple_GET_ITEM(nested, 0), static_cast<size_t>(PyTuple_GET_SIZE(nested)), asked);
    if (found) return found;
  }
  bool same = count == asked.size() && parts[kCache] == asked[kCache].get() &&
              guards::constants_equal(parts[kNames], asked[kNames].get());
  for (size_t i = kArguments; same && i < count; ++i) same = same_argument(parts[i], asked[i].get());
  return same ? parts[kAnswer] : nullptr;
}

bool is_filling(const std::pair<Ref, std::vector<Ref>>& call) {
  return call.first.get() == cpython::lru_cache_filler();
}

std::vector<PyObject*> borrowed(const Filling& filling) {
  std::vector<PyObject*> parts;
  for (const Ref& part : filling) parts.push_back(part.get());
  return parts;
}

// The answer that this region's first such call got.
Ref answer_so_far(const Capture& capture, const Filling& asked) {
  for (const auto& call : capture.deferred_calls) {
    if (!is_filling(call)) continue;
    const std::vector<PyObject*> parts = borrowed(call.second);
    if (PyObject* found = answer_in(parts.data(), parts.size(), asked)) return Ref::borrow(found);
  }
  return Ref();
}

size_t fillings(const Capture& capture) {
  const auto& calls = capture.deferred_calls;
  return static_cast<size_t>(std::count_if(calls.begin(), calls.end(), is_filling));
}

// Takes the fillings behind the first `before` deferred calls, as a tuple, or None.
Ref take_fillings(Capture& capture, size_t before) {
  auto& calls = capture.deferred_calls;
  if (calls.size() == before) return Ref::borrow(Py_None);
  Ref all = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(calls.size() - before)));
  for (size_t i = before; all && i < calls.size(); ++i) {
    Ref one = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(calls[i].second.size())));
    if (!one) return one;
    for (size_t k = 0; k < calls[i].second.size(); ++k)
      PyTuple_SET_ITEM(one.get(), static_cast<Py_ssize_t>(k), Py_NewRef(calls[i].second[k].get()));
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i - before), one.release());
  }
  if (all) calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(before), calls.end());
  return all;
}

Ref fill_behind(Capture& capture, Filling filling, Ref answer) {
  filling[kAnswer] = answer;
  capture.deferred_calls.emplace_back(Ref::borrow(cpython::lru_cache_filler()), std::move(filling));
  return answer;
}

// An answer that the cache has is given again behind the region, where it is counted.
Ref count_behind(Capture& capture, PyObject* function, const CallArgs& call, Ref answer) {
  Filling filling = function && !torch_layer::is_trusted_function(function) ? filling_of(call) : Filling();
  const bool known = is_fixed(answer.get()) || torch_layer::is_sym_scalar(answer.get());
  return filling.empty() || !known ? answer : fill_behind(capture, std::move(filling), std::move(answer));
}

// The function itself gives the value, with everything it reads guarded; the cache gets it behind the region. Where it
// does more than compute, the cache has to be there.
Ref call_past_cache(Capture& capture, PyObject* function, const CallArgs& call) {
  Filling filling = filling_of(call);
  if (filling.empty() || torch_layer::is_trusted_function(function)) filling.clear();
  Ref known = filling.empty() ? Ref() : answer_so_far(capture, filling);
  if (known) return fill_behind(capture, std::move(filling), std::move(known));
  const size_t before = acts_so_far(capture) - fillings(capture), calls = capture.deferred_calls.size();
  Ref result = graphlift::capture::call(capture, function, call.args, call.nargs, call.kwnames);
  if (capture.pending || !result) return Ref();
  if (acts_so_far(capture) - fillings(capture) != before)
    return break_here(capture, "unknown_callable", describe(call.callable) + " and what its function does besides");
  const bool varies = !filling.empty() && has_symbols(filling);
  if (!filling.empty() && !varies) result = capture.concrete(result.get());  // the cache keeps the number of now
  if (!result || filling.empty() || !(varies ? is_answer(result.get()) : is_fixed(result.get()))) return result;
  filling[kNested] = take_fillings(capture, calls);
  if (varies) return fill_behind(capture, std::move(filling), std::move(result));
  Ref key = cpython::lru_cache_key(call.callable, call.args, call.nargs, call.kwnames);
  if (!key || !filling[kNested]) return Ref();
  capture.guards.add_global(std::make_unique<CacheGives>(call.callable, std::move(key), result.get()));
  return fill_behind(capture, std::move(filling), std::move(result));
}

// A cache that was made here is what it is in eager, where it only gets values to tell apart.
Ref call_fresh_cache(Capture& capture, const CallArgs& call) {
  const Py_ssize_t total = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  for (Py_ssize_t i = 0; i < total; ++i)
    if (!is_value_constant(call.args[i])) return break_here(capture, "unknown_callable", describe(call.callable));
  Ref result = Ref::steal(PyObject_Vectorcall(call.callable, call.args, static_cast<size_t>(call.nargs), call.kwnames));
  return capture.pending ? Ref() : std::move(result);
}

// Whether what operator's getters and callers hold is constant: it can't be guarded.
bool asks_by_constants(PyObject* getter) {
  cpython::HookScope nobody(nullptr);
  Ref reduced = Ref::steal(PyObject_CallMethod(getter, "__reduce__", nullptr));
  if (!reduced) PyErr_Clear();
  if (!reduced || !PyTuple_Check(reduced.get()) || PyTuple_GET_SIZE(reduced.get()) < 2) return false;
  return PyType_Check(PyTuple_GET_ITEM(reduced.get(), 0)) && is_value_constant(PyTuple_GET_ITEM(reduced.get(), 1));
}

bool type_is(PyObject* object, const char* name) { return std::string(Py_TYPE(object)->tp_name) == name; }

}  // namespace

bool call_known_object(Capture& capture, const CallArgs& call, Ref* result) {
  if (is_partial(call.callable)) {
    *result = call_partial(capture, call);
    return true;
  }
  if (PyWeakref_CheckRef(call.callable) && Py_TYPE(call.callable)->tp_call == _PyWeakref_RefType.tp_call) {
    *result = call_weakref(capture, call);
    return true;
  }
  if (torch_layer::is_operator_object(call.callable)) {
    *result = call_operator_object(capture, call);
    return true;
  }
  if (type_is(call.callable, "functools._lru_cache_wrapper") && capture.fresh_functions.count(call.callable)) {
    *result = call_fresh_cache(capture, call);
    return true;
  }
  if (type_is(call.callable, "functools._lru_cache_wrapper")) {
    Ref wrapped = Ref::steal(PyObject_GetAttrString(call.callable, "__wrapped__"));
    *result = cached_answer(capture, call);
    if (*result) *result = count_behind(capture, wrapped.get(), call, std::move(*result));
    if (*result || PyErr_Occurred()) return true;
    if (wrapped && says_once(wrapped.get())) {
      *result = defer_call(capture, call);
      return true;
    }
    *result = wrapped ? call_past_cache(capture, wrapped.get(), call) : Ref();
    return true;
  }
  if (call_on_arrays(capture, call, result)) return true;
  if (call_on_array_numbers(capture, call, result)) return true;
  for (const char* name : {"operator.itemgetter", "operator.methodcaller", "operator.attrgetter"})
    if (type_is(call.callable, name)) {
      const bool instance =
          call.nargs > 0 && capture.is_outside(call.args[0]) && container_kind(call.args[0]) == Kind::None;
      *result = instance || !asks_by_constants(call.callable) ? break_here(capture, "unknown_callable", name)
                                                              : run_prepared(capture, call, kCompares);
      return true;
    }
  return false;
}

}  // namespace graphlift::capture
