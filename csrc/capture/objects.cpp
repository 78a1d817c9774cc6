// Owns: see objects.h.
#include "capture/objects.h"

#include "base/error.h"

namespace graphlift::capture {

Objects::Objects() : deleted_(Ref::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)))) {
  GL_CHECK(deleted_, "the marker of deleted keys can't be made");
}

Outside* Objects::find(PyObject* object) {
  auto found = by_object_.find(object);
  return found == by_object_.end() ? nullptr : found->second;
}

Outside* Objects::of_shadow(PyObject* shadow) {
  auto found = by_shadow_.find(shadow);
  return found == by_shadow_.end() ? nullptr : found->second;
}

Outside* Objects::add(PyObject* object, guards::OriginId origin) {
  auto [place, fresh] = by_object_.try_emplace(object, nullptr);
  if (fresh) {
    Outside& outside = all_.emplace_back();
    outside.object = Ref::borrow(object);
    outside.origin = origin;
    place->second = &outside;
  }
  return place->second;
}

void Objects::set_shadow(Outside* outside, Ref shadow, Ref baseline) {
  GL_CHECK(!outside->shadow, "an outside object has one shadow");
  by_shadow_[shadow.get()] = outside;
  outside->shadow = std::move(shadow);
  outside->baseline = std::move(baseline);
}

void Objects::mutated(Outside* outside) {
  ++changes_;
  if (outside->order == 0) outside->order = ++mutations_;
}

}  // namespace graphlift::capture
