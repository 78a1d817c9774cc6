// Owns: the table of origins: interning, words, and the slow step-by-step fetch.
#include "guards/origin.h"

#include <algorithm>

#include "base/error.h"
#include "guards/constant.h"
#include "guards/fetch.h"

namespace graphlift::guards {

namespace {

bool same_part(PyObject* a, PyObject* b) { return a == b || (a && b && constants_equal(a, b)); }

size_t origin_hash(const Origin& origin) {
  size_t hash = static_cast<size_t>(origin.kind);
  hash = hash * 1000003 ^ static_cast<size_t>(origin.parent + 1);
  hash = hash * 1000003 ^ static_cast<size_t>(origin.index);
  return hash * 1000003 ^ (origin.key ? constant_hash(origin.key.get()) : 0);
}

}  // namespace

OriginId OriginTable::intern(Origin origin) {
  std::vector<OriginId>& bucket = by_hash_[origin_hash(origin)];
  for (OriginId id : bucket) {
    const Origin& known = at(id);
    if (known.kind == origin.kind && known.parent == origin.parent && known.index == origin.index &&
        same_part(known.key.get(), origin.key.get()))
      return id;
  }
  const OriginId id = static_cast<OriginId>(origins_.size());
  bucket.push_back(id);
  origins_.push_back(std::move(origin));
  return id;
}

OriginId OriginTable::root(OriginKind kind, int index, PyObject* key) {
  GL_CHECK(is_root(kind), "a step is no root");
  GL_CHECK(kind != OriginKind::Constant || key, "a constant needs its object");
  return intern({kind, kNoOrigin, Ref::borrow(key), index});
}

OriginId OriginTable::child(OriginId parent, OriginKind kind, PyObject* key, int index) {
  GL_CHECK(!is_root(kind), "a root has no parent");
  GL_CHECK(parent >= 0 && static_cast<size_t>(parent) < origins_.size(), "unknown parent origin");
  return intern({kind, parent, Ref::borrow(key), index});
}

std::string OriginTable::text(OriginId id, PyCodeObject* code) const {
  if (id == kNoOrigin) return "";
  std::vector<OriginId> path;
  for (OriginId step = id; step != kNoOrigin; step = at(step).parent) path.push_back(step);
  std::string words;
  for (size_t i = path.size(); i-- > 0;) words = step_text(at(path[i]), words, code);
  return words;
}

Ref OriginTable::fetch(OriginId id, const Roots& roots) const {
  const Origin& origin = at(id);
  if (origin.kind == OriginKind::Constant) return origin.key;
  if (is_root(origin.kind)) return Ref::borrow(fetch_root(roots, origin.kind, origin.index));
  Ref parent = fetch(origin.parent, roots);
  if (!parent) return {};
  if (is_registered(origin.kind)) {
    FetchStep step = registered_fetch(origin.kind, origin.key.get());
    return step ? step(parent.get(), origin) : Ref();
  }
  Step step;
  if (!prepare_step(origin, &step)) {
    PyErr_Clear();
    return {};
  }
  const FetchRow& row = fetch_row(origin.kind);
  return row.fits(parent.get()) ? Ref::borrow(row.fetch(parent.get(), step)) : Ref();
}

}  // namespace graphlift::guards
