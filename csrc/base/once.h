// Owns: a value that is made at its first use. Must not: hold a lock while it is made.
#pragma once

#include <atomic>
#include <memory>

namespace graphlift {

// For values whose making may run Python code. The guard of a static local would be held while the GIL is given up, and
// a thread that waits for the guard with the GIL never gets it. Here two threads may both make the value; the first to
// be done is kept, for the life of the process.
template <typename T>
class Once {
 public:
  constexpr Once() = default;

  template <typename Make>
  const T& get(Make&& make) {
    if (const T* found = made_.load(std::memory_order_acquire)) return *found;
    auto made = std::make_unique<const T>(make());
    const T* first = nullptr;
    if (!made_.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel)) return *first;
    return *made.release();
  }

 private:
  std::atomic<const T*> made_ = nullptr;
};

}  // namespace graphlift
