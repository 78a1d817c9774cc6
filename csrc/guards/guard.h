// Owns: guards: one check on the object at an origin, and the tree that runs a region's checks in one walk.
// Must not: run Python code while checking, or allocate on a hit beyond what the caller lent.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "guards/origin.h"
#include "ir/sym.h"

namespace graphlift::guards {

// GUARD(name, cost class (0 cheapest), "text; {} is the origin, [] the operand")
#define GRAPHLIFT_GUARDS(GUARD)                                                                                        \
  GUARD(TypeIs, 0, "type({}) is []")                                                                                   \
  GUARD(Is, 0, "{} is []") /* identity; weak where the object allows a weakref; never true again once it died */       \
  GUARD(IsNot, 0, "{} is not []")                                                                                      \
  GUARD(Equals, 1,                                                                                                     \
        "{} == []") /* same exact type and value: int, float (bitwise), str, bytes, bool, complex, tuple of those */   \
  GUARD(Length, 1, "len({}) == []") /* list, tuple, dict, set, by C size */                                            \
  GUARD(HasKey, 2, "[] in {}")      /* raw dict */                                                                     \
  GUARD(LacksKey, 2, "[] not in {}")                                                                                   \
  GUARD(KeysAre, 3, "list({}) == []")    /* raw dict: same keys in the same order; operand: tuple of keys, compared by \
                                            identity, then as Equals does; an OrderedDict: in its own order */         \
  GUARD(SetIs, 3, "{} == []")            /* set or frozenset of guardable constants; operand: frozenset */             \
  GUARD(Missing, 0, "{} does not exist") /* the origin's fetch finds nothing */                                        \
  GUARD(CellEmpty, 0, "{} is empty")                                                                                   \
  GUARD(SameAs, 1, "{} is []") /* number: the id of another origin; both are fetched */                                \
  GUARD(NotSameAs, 1, "{} is not []")                                                                                  \
  GUARD(TypeVersion, 0, "type {} unchanged") /* number: tp_version_tag seen; object is a type */

enum class GuardKind : uint8_t {
#define GUARD(name, cost, text) name,
  GRAPHLIFT_GUARDS(GUARD)
#undef GUARD
};

// A check that another layer supplies (tensor properties, global state of torch).
class LeafCheck {
 public:
  virtual ~LeafCheck() = default;
  // No Python runs, nothing is allocated. `symbols`: values bound so far, by SymbolId; a check may bind further ones.
  virtual bool check(PyObject* object, int64_t* symbols) const = 0;
  virtual std::string text(const std::string& origin) const = 0;
  // What differs, in the user's words: "size of dimension 0 is 5, not 4". Called only after check() failed.
  virtual std::string explain(PyObject* object) const = 0;
  virtual int cost() const { return 4; }
  // Python objects that it holds strongly.
  virtual int traverse(visitproc, void*) const { return 0; }
};

// What capture collects. Duplicates are dropped.
class GuardSet {
 public:
  OriginTable& origins() { return origins_; }
  const OriginTable& origins() const { return origins_; }
  void add(OriginId where, GuardKind kind, PyObject* operand = nullptr, int64_t number = 0);
  void add_check(OriginId where, std::unique_ptr<LeafCheck> check);  // one per origin and dynamic type
  void add_global(std::unique_ptr<LeafCheck> check);                 // checked first, on no object
  void add_symbolic(const ir::SymGuard& guard);                      // checked last, on bound symbols
  // Each of `apart` differs from all the others, and from `others`: bound symbols, or objects at origins.
  void add_distinct_symbols(std::vector<ir::SymbolId> apart, std::vector<ir::SymbolId> others);
  void add_distinct_objects(std::vector<OriginId> apart, std::vector<OriginId> others);
  // An int read from outside that varies: an exact int from `lowest` up to 64 bits. Give the bound that the symbol was
  // made with (ShapeEnv::new_symbol). A symbol that is bound twice must get the same value.
  void bind_symbol(OriginId int_object, ir::SymbolId symbol, int64_t lowest = 2);

  struct Entry {
    OriginId where;
    GuardKind kind;
    Ref operand;
    int64_t number;
  };
  std::vector<Entry> entries;
  std::vector<std::pair<OriginId, std::unique_ptr<LeafCheck>>> checks;
  std::vector<std::unique_ptr<LeafCheck>> globals;
  std::vector<ir::SymGuard> symbolic;
  struct DistinctRow {
    std::vector<int32_t> apart, others;
  };
  std::vector<DistinctRow> distinct_symbols, distinct_objects;
  struct IntSymbol {
    OriginId where;
    ir::SymbolId symbol;
    int64_t lowest;
  };
  std::vector<IntSymbol> int_symbols;

 private:
  OriginTable origins_;
  std::unordered_map<size_t, std::vector<size_t>> entries_by_hash_;     // indices into entries
  std::unordered_map<OriginId, std::vector<size_t>> checks_by_origin_;  // indices into checks
};

// The checker of one region: a trie over the origins that guards or fetches need, each fetched once. What it answers
// never changes; it remembers the last hit to be quicker (guards/memo.h), under the GIL.
class GuardTree {
 public:
  // `fetches`: origins whose objects the region needs; check() delivers them in this order.
  GuardTree(GuardSet guards, std::vector<OriginId> fetches, size_t symbol_count, PyCodeObject* code);
  ~GuardTree();
  GuardTree(const GuardTree&) = delete;
  GuardTree& operator=(const GuardTree&) = delete;

  size_t fetch_count() const;
  size_t symbol_count() const;
  // True: all guards hold; `fetched` (fetch_count() slots, null before) holds new references, `symbols` the bound
  // values. False: `fetched` is all null again.
  bool check(const Roots& roots, PyObject** fetched, int64_t* symbols) const;
  // Words for the first guard that fails: "L['x'] size of dimension 0 is 5, not 4". Empty when all hold.
  std::string explain(const Roots& roots) const;
  std::string text() const;  // one guard a line, for GRAPHLIFT_LOGS=guards
  size_t guard_count() const;
  // Objects held strongly, for the owner's tp_traverse/tp_clear.
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace graphlift::guards
