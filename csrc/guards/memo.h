// Owns: a shortcut for a plan's walk, made from the last one that held: the few memory words that prove that most of it
// would find the same again, in an order in which each word is known to be readable, and what remains to be done. Must
// not: hit where walk() would fail. A miss proves nothing; the caller walks.
//
// A node is *pinned* when the proof shows that its object is the very object seen before, without a gap (a dict whose
// version tag is unchanged still holds it); *same* when an object was found at the same address (it may be a new one,
// so its type and value are looked at again); *varying* when it is fetched and checked plainly. What changes often
// becomes varying.
#pragma once

#include <cstdint>
#include <vector>

#include "guards/walk.h"

namespace graphlift::guards {

// OtherRoot: a miss, because a frame's slot holds another object than the one that was remembered.
enum class Outcome : uint8_t { Hit, Miss, OtherRoot, Fail };

class Memo {
 public:
  explicit Memo(const Plan& plan);

  // Hit: slots() has the objects of all nodes. Fail: a guard does not hold. Globals and symbolic guards are not its
  // business.
  Outcome run(const Plan& plan, const Roots& roots, int64_t* symbols, Ref* owned, Failure* failure);
  // Remembers a walk that held; `walked` gets the earlier slots in exchange. `learn`: what differs from before varies.
  void record(const Plan& plan, std::vector<PyObject*>* walked, bool learn);
  // What another memo of the same plan learned.
  void learn_from(const Memo& other);
  PyObject* const* slots() const { return slots_.data(); }

 private:
  friend class Recorder;
  enum class Op : uint8_t { Words, TypeTag, Fetch, FetchSame, Missing, Check };
  struct Action {
    Op op;
    int32_t first;  // Words: range of words_; TypeTag: of type_tags_; Check: of the plan's checks; else a node
    int32_t last;
  };
  struct Word {
    const void* address;
    uint64_t value;
  };
  struct TypeTag {
    const unsigned* address;
    unsigned value;
  };
  struct LeafAt {
    const LeafCheck* check;
    int32_t node;
    int32_t index;  // of the plan's leaves
  };
  // What is known of a node over time.
  struct History {
    uint64_t contents = 0;        // tag of a dict or type when recorded; 0: not used
    uint32_t object_changed = 0;  // clock when another object was found
    uint32_t contents_changed = 0;
    bool varies = false;
    bool contents_vary = false;
  };

  Outcome run_actions(const Plan& plan, const Roots& roots, Ref* owned, Failure* failure);
  bool words_hold(const Action& action) const;
  bool leaves_hold(int64_t* symbols, Failure* failure) const;
  void note_changes(const Plan& plan, const std::vector<PyObject*>& walked);

  std::vector<PyObject*> slots_;  // borrowed; dereferenced only behind the proof
  std::vector<Action> actions_;
  std::vector<Word> words_;
  std::vector<TypeTag> type_tags_;
  std::vector<LeafAt> leaves_;
  std::vector<int32_t> pairs_;
  std::vector<int32_t> distinct_;  // of the plan's distinct_objects
  std::vector<History> history_;
  uint32_t clock_ = 1;
  bool ready_ = false;
};

}  // namespace graphlift::guards
