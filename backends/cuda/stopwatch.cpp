// Owns: see stopwatch.h.
#include "backends/cuda/stopwatch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>
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
// Runs between two events: enough that the clock's steps of half a microsecond are small.
constexpr double kBurst = 100;  // microseconds
constexpr int kMostPerBurst = 20, kFewestRounds = 3, kMostRounds = 50;

// Work that keeps the GPU busy while runs are launched, so that it never waits for the host.
class Blocker {
 public:
  explicit Blocker(const Place& place) {
    if (place.device.is_cuda()) memory_ = at::empty({kBytes}, at::TensorOptions(at::kByte).device(place.device));
  }
  void launch(double microseconds) {
    if (memory_.defined())
      for (double passed = 0; passed < microseconds; passed += kFill) memory_.zero_();
  }

 private:
  static constexpr int64_t kBytes = int64_t{96} << 20;
  static constexpr double kFill = 20;  // on the fastest GPUs
  at::Tensor memory_;
};

Time burst(const Place& place, Blocker* blocker, const std::function<void()>& way, int times, double host) {
  Event start, end;
  blocker->launch(1.5 * host * times + kBurst / 5);
  start.record(place.stream());
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) way();
  const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - begun;
  end.record(place.stream());
  return {end.microseconds_since(start) / times, passed.count() / times};
}

// The first run loads code; the second ones tell how many make a burst.
Time first_runs(const Place& place, Blocker* blocker, const std::function<void()>& way) {
  try {
    way();
    return burst(place, blocker, way, 2, kBurst);
  } catch (const std::exception&) {
    return {kInfinite, kInfinite};
  }
}

}  // namespace

bool may_measure(const Place& place) {
  int capturing = 0;
  return driver().cuStreamIsCapturing(place.stream(), &capturing) == 0 && capturing == 0;
}

std::vector<Time> measure(const Place& place, const std::vector<std::function<void()>>& ways, double seconds) {
  place.enter_context();
  Blocker blocker(place);
  std::vector<Time> best;
  std::vector<int> times;
  double round = 0;
  for (const auto& way : ways) {
    best.push_back(first_runs(place, &blocker, way));
    times.push_back(std::clamp(static_cast<int>(kBurst / std::max(best.back().device, 1.0)), 1, kMostPerBurst));
    if (best.back().device < kInfinite) round += best.back().device * times.back() + kBurst;
  }
  const int rounds = std::clamp(static_cast<int>(1e6 * seconds / std::max(round, 1.0)), kFewestRounds, kMostRounds);
  for (int i = 0; i < rounds; ++i) {
    for (size_t way = 0; way < ways.size(); ++way) {
      if (best[way].device == kInfinite) continue;
      const Time time = burst(place, &blocker, ways[way], times[way], best[way].host);
      best[way] = {std::min(best[way].device, time.device), std::min(best[way].host, time.host)};
    }
  }
  return best;
}

size_t quickest(const std::vector<Time>& times, Tuning tuning) {
  constexpr double kAhead = 0.97;
  const auto best = std::min_element(
      times.begin(), times.end(), [&](const Time& a, const Time& b) { return a.counted(tuning) < b.counted(tuning); });
  return best->counted(tuning) > kAhead * times[0].counted(tuning) ? 0 : static_cast<size_t>(best - times.begin());
}

std::string gpu_name(const Place& place) {
  std::array<char, 256> name{};
  int handle = 0;
  check_driver(driver().cuDeviceGet(&handle, std::max<int>(0, place.device.index())), "a GPU");
  check_driver(driver().cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, handle), "a GPU's name");
  return name.data();
}

}  // namespace graphlift::cuda
