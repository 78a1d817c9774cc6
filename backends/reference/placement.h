// Owns: who is told, while a program runs, whether the results ahead leave it. Recorders listen: what leaves must lie
// in memory that no launch of theirs writes to again, what stays inside may be written over.
#pragma once

namespace graphlift::reference {

class PlacementListener {
 public:
  virtual ~PlacementListener() = default;
  // Memory that is allocated from now on is of results that leave (true), or is let go of before the program ends or
  // with what its backward reads (false). Called on each change; a program begins and ends with false.
  virtual void place(bool leaving) = 0;
};

// Of this thread; null: nobody listens.
inline PlacementListener*& placement_listener() {
  static thread_local PlacementListener* listener = nullptr;
  return listener;
}

class ListenToPlacement {
 public:
  explicit ListenToPlacement(PlacementListener* listener) : before_(placement_listener()) {
    placement_listener() = listener;
  }
  ~ListenToPlacement() { placement_listener() = before_; }
  ListenToPlacement(const ListenToPlacement&) = delete;
  ListenToPlacement& operator=(const ListenToPlacement&) = delete;

 private:
  PlacementListener* const before_;
};

}  // namespace graphlift::reference
