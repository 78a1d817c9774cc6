// Owns: programs whose launches are recorded once (a CUDA graph) and replayed as one, for the mode "reduce-overhead".
// Must not: know CUDA: a recorder is handed in.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <optional>

#include "backend/backend.h"

namespace graphlift::cuda {

// What was recorded: replayed, it reads and writes the same memory as then.
class Launches {
 public:
  virtual ~Launches() = default;
  virtual void replay() const = 0;
};

class Recorder {
 public:
  virtual ~Recorder() = default;
  // Records what `run` launches; its results are made by the first replay. Throws where something can't be recorded.
  // Memory that a placement listener hears of as leaving is this recording's alone; the rest is, too, or what another
  // recording, `beside`, uses in between where it is free now.
  virtual std::unique_ptr<Launches> record(const std::function<void()>& run, const Launches* beside) const = 0;
  // The queue of work that launches go to now; none while the program itself records it.
  virtual std::optional<const void*> queue() const = 0;
  // Enqueued there.
  virtual void copy(void* to, const void* from, size_t bytes) const = 0;
};

// Runs `program` as it is at first, then from recordings. An input that comes from another place in memory in each call
// is copied to one of the recording's own; the others are read where they are, and a recording serves only calls with
// the same places. Results stay the caller's for as long as something refers to them: a recording whose results are
// still in use is not replayed, another one is made, and beyond a few the program runs as it is. `device`: where all
// inputs and results have to be. Results from `saved_from` on are read by a backward alone, whose recording may use
// their memory for what it needs in between once it has read them.
std::unique_ptr<backend::CompiledGraph> make_replayed(std::unique_ptr<backend::CompiledGraph> program,
                                                      const ir::Graph& graph, c10::DeviceType device,
                                                      std::shared_ptr<const Recorder> recorder,
                                                      size_t saved_from = SIZE_MAX);

}  // namespace graphlift::cuda
