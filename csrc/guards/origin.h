// Owns: origins: how an object that existed before a region is found again from the region's roots. One row per kind.
// Must not: decide what to guard (capture/) or know torch (a tensor-specific step is a row whose fetch is registered by
// torch/).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ref.h"

namespace graphlift::guards {

// What a lookup starts from: a frame's content at the region's first instruction. All borrowed.
struct Roots {
  PyObject* const* locals = nullptr;  // nlocalsplus slots
  PyObject* const* stack = nullptr;
  PyObject* globals = nullptr;
  PyObject* builtins = nullptr;
  PyObject* function = nullptr;        // may be null
  PyObject* const* callers = nullptr;  // what frames around hold that the region goes on in (capture/callers.h)
};

// KIND(name, "text in guards' printouts; {} is the parent, [] the key or index")
#define GRAPHLIFT_ORIGINS(KIND)                                                                       \
  KIND(Local, "L[[]]") /* roots: index into locals */                                                 \
  KIND(Stack, "S[[]]") /* index into the value stack */                                               \
  KIND(Globals, "G")   /* the frame's globals dict */                                                 \
  KIND(Builtins, "B")                                                                                 \
  KIND(Function, "F")               /* the frame's function object */                                 \
  KIND(Caller, "C[[]]")             /* index into what callers' frames hold */                        \
  KIND(Constant, "[]")              /* key is the object itself: a type, a module, a module's dict */ \
  KIND(InstanceDict, "{}.__dict__") /* materialized instance dict; absent: fetch fails */             \
  KIND(DictItem, "{}[[]]")          /* value of a key in an exact or derived dict, raw storage */     \
  KIND(ListItem, "{}[[]]")          /* index into a list's raw storage */                             \
  KIND(TupleItem, "{}[[]]")                                                                           \
  KIND(Slot, "{}.[]") /* key is a member descriptor of a __slots__ attribute */                       \
  KIND(TypeOf, "type({})")                                                                            \
  KIND(TypeAttr, "{}.__mro__[[]]") /* _PyType_Lookup(type, name) */                                   \
  KIND(Cell, "{}.cell_contents")                                                                      \
  KIND(Closure, "{}.__closure__[[]]") /* cell object of a function */                                 \
  KIND(Defaults, "{}.__defaults__")                                                                   \
  KIND(KwDefaults, "{}.__kwdefaults__")                                                               \
  KIND(Code, "{}.__code__")                                                                           \
  KIND(FunctionGlobals, "{}.__globals__")                                                             \
  KIND(FunctionDict, "{}.__dict__")                                                                   \
  KIND(MethodSelf, "{}.__self__")                                                                     \
  KIND(MethodFunction, "{}.__func__")                                                                 \
  KIND(PartialPart, "{}.[]")      /* func, args, keywords of functools.partial */                     \
  KIND(ModuleDict, "vars({})")    /* dict of a module object */                                       \
  KIND(WeakTarget, "{}()")        /* referent of a weakref */                                         \
  KIND(CacheDict, "cache of {}")  /* of functools.lru_cache */                                        \
  KIND(CacheEntry, "{}.result")   /* the answer in a link of a bounded cache */                       \
  KIND(ContextValue, "{}.get()")  /* of a context variable, now */                                    \
  KIND(TensorGrad, "{}.grad")     /* fetch registered by torch/ */                                    \
  KIND(TensorDict, "{}.__dict__") /* Python attributes of a tensor */                                 \
  KIND(Custom, "{}.[]")           /* key names a fetch registered with register_fetch */

enum class OriginKind : uint8_t {
#define KIND(name, text) name,
  GRAPHLIFT_ORIGINS(KIND)
#undef KIND
};

// Index of an origin in its OriginTable. Roots and steps are interned: equal paths have equal ids.
using OriginId = int32_t;
inline constexpr OriginId kNoOrigin = -1;

struct Origin {
  OriginKind kind;
  OriginId parent = kNoOrigin;
  Ref key;        // DictItem, TypeAttr, Slot, Constant, PartialPart, Custom
  int index = 0;  // Local, Stack, Caller, ListItem, TupleItem, Closure
};

// Keys are compared without running Python code: by identity, or as builtin values (numbers, str, bytes, tuples of
// those). A dict entry of the same hash that only Python code could compare makes the fetch fail (and every guard on
// that key too). An InstanceDict fetch may make the dict from inline values, once per object. A member descriptor
// (Slot) is held strongly.
//
// Fetches one step. Returns a new reference; null WITHOUT a Python error when the step does not exist. Runs no Python
// code.
using FetchStep = Ref (*)(PyObject* parent, const Origin& step);
// For kinds whose fetch needs another layer (torch): TensorGrad, and Custom rows by name.
void register_fetch(OriginKind kind, FetchStep fetch);
void register_custom_fetch(std::string name, FetchStep fetch);

class OriginTable {
 public:
  OriginId root(OriginKind kind, int index = 0, PyObject* key = nullptr);
  OriginId child(OriginId parent, OriginKind kind, PyObject* key = nullptr, int index = 0);
  const Origin& at(OriginId id) const { return origins_[static_cast<size_t>(id)]; }
  size_t size() const { return origins_.size(); }
  // "L['self'].__dict__['_modules']['lin']": names of locals come from `code` (may be null).
  std::string text(OriginId id, PyCodeObject* code) const;
  Ref fetch(OriginId id, const Roots& roots) const;  // slow path: step by step

 private:
  OriginId intern(Origin origin);
  std::vector<Origin> origins_;
  std::unordered_map<size_t, std::vector<OriginId>> by_hash_;
};

}  // namespace graphlift::guards
