// Owns: making a Memo's proof and remaining work from the objects of a walk that held.
// Must not: run Python code: the objects must stay as the walk found them.
#pragma once

#include "guards/memo.h"

namespace graphlift::guards {

class Recorder {
 public:
  Recorder(const Plan& plan, Memo* memo);
  void record();

 private:
  enum class State : uint8_t { Varying, Same, Pinned };
  struct Known {
    State state = State::Varying;
    bool layout = false;    // the object's memory layout is what it was
    bool type = false;      // its type is what it was
    bool contents = false;  // a dict's or type's version tag is in the proof
  };

  void visit(int32_t i);
  bool absence_is_proven(const Node& node);
  State enter(int32_t i);
  State enter_by_words(const Node& node, PyObject* object);
  State enter_instance_dict(const Node& node, PyObject* object);
  State fetch_again(int32_t i);
  void prove_type(int32_t i);
  void prove_contents(int32_t i);
  bool asks_contents(const Node& node, int32_t i) const;
  bool is_proven(const Check& check, const Known& known, PyObject* object);
  void add_pairs();

  void word(const void* address, uint64_t value);
  void word(const void* address, const void* value) { word(address, reinterpret_cast<uint64_t>(value)); }
  void alive(const Handle& handle);
  void action(Memo::Op op, int32_t first, int32_t last = 0) { memo_.actions_.push_back({op, first, last}); }
  const Known* parent_of(const Node& node) const {
    return node.parent < 0 ? nullptr : &known_[static_cast<size_t>(node.parent)];
  }

  const Plan& plan_;
  Memo& memo_;
  std::vector<Known> known_;
  std::vector<const void*> proven_alive_;
};

}  // namespace graphlift::guards
