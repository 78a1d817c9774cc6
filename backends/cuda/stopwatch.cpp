// Owns: see stopwatch.h.
#include "backends/cuda/stopwatch.h"

#include <array>
#include <limits>

namespace graphlift::cuda {
namespace {

class Event {
 public:
  Event() { check_driver(driver().cuEventCreate(&event_, 0), "an event"); }
  ~Event() { driver().cuEventDestroy_v2(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(void* queue) { check_driver(driver().cuEventRecord(event_, queue), "an event"); }
  double microseconds_since(const Event& start) {
    check_driver(driver().cuEventSynchronize(event_), "waiting");
    float milliseconds = 0;
    check_driver(driver().cuEventElapsedTime(&milliseconds, start.event_, event_), "a time");
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  void* event_ = nullptr;
};

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Runs between two events: enough that the clock's steps of half a microsecond and the host's pace are small.
constexpr double kBurst = 100;  // microseconds
constexpr int kMostPerBurst = 20, kFewestRounds = 3, kMostRounds = 50;

double burst(const Place& place, const std::function<void()>& way, int times) {
  Event start, end;
  start.record(place.stream());
  for (int i = 0; i < times; ++i) way();
  end.record(place.stream());
  return end.microseconds_since(start) / times;
}

// The first run loads code; the second one tells how many make a burst. Infinity: it fails.
double first_runs(const Place& place, const std::function<void()>& way) {
  try {
    way();
    return burst(place, way, 2);
  } catch (const std::exception&) {
    return kInfinite;
  }
}

}  // namespace

bool may_measure(const Place& place) {
  int capturing = 0;
  return driver().cuStreamIsCapturing(place.stream(), &capturing) == 0 && capturing == 0;
}

std::vector<double> measure(const Place& place, const std::vector<std::function<void()>>& ways, double seconds) {
  place.enter_context();
  std::vector<double> best;
  std::vector<int> times;
  double round = 0;
  for (const auto& way : ways) {
    best.push_back(first_runs(place, way));
    times.push_back(std::clamp(static_cast<int>(kBurst / std::max(best.back(), 1.0)), 1, kMostPerBurst));
    if (best.back() < kInfinite) round += best.back() * times.back();
  }
  const int rounds = std::clamp(static_cast<int>(1e6 * seconds / std::max(round, 1.0)), kFewestRounds, kMostRounds);
  for (int i = 0; i < rounds; ++i)
    for (size_t way = 0; way < ways.size(); ++way)
      if (best[way] < kInfinite) best[way] = std::min(best[way], burst(place, ways[way], times[way]));
  return best;
}

std::string gpu_name(const Place& place) {
  std::array<char, 256> name{};
  int handle = 0;
  check_driver(driver().cuDeviceGet(&handle, std::max<int>(0, place.device.index())), "a GPU");
  check_driver(driver().cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, handle), "a GPU's name");
  return name.data();
}

}  // namespace graphlift::cuda
