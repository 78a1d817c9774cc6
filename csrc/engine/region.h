// Owns: regions and where they are kept: per compiled callable, by code object and first instruction.
// Must not: capture (capture/root.h) or run them (run.h).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "capture/root.h"
#include "guards/guard.h"
#include "torch/tracer.h"

namespace graphlift::engine {

struct Config {
  bool fullgraph = false;
  capture::Dynamic dynamic = capture::Dynamic::Automatic;
  std::shared_ptr<const backend::Backend> backend;
  backend::Options how;
  bool recompute = true;
  bool remember_weights = false;
  size_t recompile_limit = 8;     // regions that start at one instruction
  size_t regions_per_code = 128;  // all of one code object
};

// One captured stretch of a frame. Immutable once made.
struct Region {
  Region();
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  enum class Kind : uint8_t {
    Graph,  // guards, then the executable and the recipe
    Plain,  // no tensor work was found: real instructions run up to exit_unit while the guards hold
    Empty,  // nothing can be captured at this instruction: it runs for real
  };
  Kind kind = Kind::Graph;
  int begin_unit = 0;
  bool returns = false;
  int exit_unit = 0;
  std::vector<capture::Place> left, callers;  // as capture::Captured has them
  std::vector<capture::Place> inner;          // the exit is inside of calls that its instruction makes; outermost first
  std::optional<capture::Break> reason;
  std::unique_ptr<guards::GuardTree> guards;            // null: Empty
  std::unique_ptr<torch_layer::Executable> executable;  // null: no tensor work
  capture::Recipe recipe;
  size_t primals = 0;
  size_t outputs = 0;                         // of the executable
  std::optional<capture::ReadyResult> ready;  // returns without making anything
  size_t graph_calls = 0;
  bool expects = false;  // its graph may stop, and leave the call to the program
  mutable std::atomic<uint64_t> hits{0};
  mutable std::atomic<uint32_t> stops{0};

  int traverse(visitproc visit, void* arg) const;
};
using RegionPtr = std::shared_ptr<const Region>;

struct UnitEntry {
  std::vector<RegionPtr> regions;  // latest hit first is not kept: order is of capture
  capture::Seen seen;
  bool limit_reported = false;

  // The region's graph left a call to the program. One whose expectations fail too often is dropped.
  void note_stop(const RegionPtr& region);
};

struct CodeEntry {
  std::unordered_map<int, UnitEntry> units;
  size_t regions = 0;
  bool given_up = false;
};

// The state behind one compiled callable. Touched under the GIL only.
class Owner {
 public:
  explicit Owner(Config config);
  ~Owner();
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  const Config config;
  std::unordered_map<PyCodeObject*, CodeEntry> codes;
  std::vector<Ref> held_codes;  // their addresses are keys above

  // Whether the reason of a new region was told already: of a call that runs for real since no tensor work is cut by
  // that, and is captured on its own, the caller told what happens in it.
  bool is_told(const Region& region, const std::vector<capture::Place>& met);

  CodeEntry& entry(PyCodeObject* code);
  void clear();
  int traverse(visitproc visit, void* arg) const;

 private:
  std::map<std::pair<PyObject*, int>, Ref> told_ahead_;  // code and unit
};

// Drops the regions of every living owner.
void reset_all();
// Counts since the last reset_all().
struct Counters {
  uint64_t graphs = 0;        // regions compiled with tensor work
  uint64_t regions = 0;       // all regions
  uint64_t graph_breaks = 0;  // regions that ended before their frame did
  uint64_t recompiles = 0;
  uint64_t captures = 0;        // attempts included
  uint64_t hits = 0;            // regions run from guards that held
  uint64_t frameless_hits = 0;  // of these, without a Python frame
  uint64_t given_up = 0;
  uint64_t internal_errors = 0;
  uint64_t live_regions = 0;  // that exist, whoever holds them; not reset
};
Counters& counters();

}  // namespace graphlift::engine
