// Recordings of a forward and its backward that share memory: on a tape in place of a GPU, with an allocator that gives
// freed memory out again at once, so that whatever is written over too early shows in values.
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "backends/cuda/replay.h"
#include "backends/reference/placement.h"

namespace graphlift::cuda::inner_memory_test {
namespace {

constexpr int64_t kElements = 64;

using Work = std::vector<std::function<void()>>;

// Blocks are given to whoever asks first once they are free.
class Pool final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    for (Block& block : blocks_)
      if (block.free && block.memory.size() >= bytes) return given(&block);
    bytes_ += bytes;
    return given(&blocks_.emplace_back(Block{std::vector<char>(bytes), true}));
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t count) const override { std::memcpy(to, from, count); }
  size_t bytes() const { return bytes_; }

 private:
  struct Block {
    std::vector<char> memory;
    bool free;
  };
  static c10::DataPtr given(Block* block) {
    block->free = false;
    return {block->memory.data(), block, [](void* of) { static_cast<Block*>(of)->free = true; }, c10::kCPU};
  }
  std::deque<Block> blocks_;
  size_t bytes_ = 0;
};

// Freed memory is not touched until it is given out again, as on a GPU.
c10::Allocator* usual_memory() {
  static auto* pool = new Pool;
  return pool;
}

struct Tape : reference::PlacementListener {
  Work* recording = nullptr;
  Pool *inner = nullptr, *own = nullptr;

  void launch(std::function<void()> work) {
    if (recording)
      recording->push_back(std::move(work));
    else
      work();
  }
  void place(bool leaving) override { c10::SetCPUAllocator(leaving ? own : inner, 255); }
};

class TapeLaunches final : public Launches {
 public:
  TapeLaunches(Work work, std::shared_ptr<Pool> inner, std::shared_ptr<Pool> own)
      : inner(std::move(inner)), own_(std::move(own)), work_(std::move(work)) {}
  void replay() const override {
    for (const auto& one : work_) one();
  }
  const std::shared_ptr<Pool> inner;

 private:
  const std::shared_ptr<Pool> own_;
  const Work work_;
};

class TapeRecorder final : public Recorder {
 public:
  explicit TapeRecorder(Tape* tape) : tape_(*tape) {}
  std::unique_ptr<Launches> record(const std::function<void()>& run, const Launches* beside) const override {
    auto inner = beside ? static_cast<const TapeLaunches*>(beside)->inner : pools.emplace_back(new Pool);
    auto own = pools.emplace_back(new Pool);
    Work work;
    tape_.recording = &work, tape_.inner = inner.get(), tape_.own = own.get();
    tape_.place(false);
    {
      const reference::ListenToPlacement listening(&tape_);
      run();
    }
    c10::SetCPUAllocator(usual_memory(), 255);
    tape_.recording = nullptr;
    ++recorded;
    return std::make_unique<TapeLaunches>(std::move(work), inner, own);
  }
  std::optional<const void*> queue() const override { return nullptr; }
  void copy(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  mutable int recorded = 0;
  mutable std::vector<std::shared_ptr<Pool>> pools;  // until the test ends: tensors may outlive recordings

 private:
  Tape& tape_;
};

// to[i] = a * x[i] + b * y[i], when the work is done.
void combine(Tape* tape, const at::Tensor& to, float a, const at::Tensor& x, float b, const at::Tensor& y) {
  auto* out = to.mutable_data_ptr<float>();
  const auto *p = x.const_data_ptr<float>(), *q = y.const_data_ptr<float>();
  tape->launch([=] {
    for (int64_t i = 0; i < kElements; ++i) out[i] = a * p[i] + b * q[i];
  });
}

at::Tensor room() { return at::empty({kElements}, at::kFloat); }

at::Tensor leaving_room() {
  reference::PlacementListener* listener = reference::placement_listener();
  if (listener) listener->place(true);
  at::Tensor made = room();
  if (listener) listener->place(false);
  return made;
}

// x -> 3 x + 1 x (seen by the caller), 2 x (saved), 5 x (saved), by way of memory that is needed in between.
class Forward final : public backend::CompiledGraph {
 public:
  explicit Forward(Tape* tape) : tape_(tape) {}
  void run(at::Tensor* inputs, const int64_t*, at::Tensor* outputs) const override {
    const at::Tensor x = std::move(inputs[0]);
    at::Tensor triple = room();
    combine(tape_, triple, 3, x, 0, x);
    outputs[1] = room();
    combine(tape_, outputs[1], 2, x, 0, x);
    outputs[0] = leaving_room();
    combine(tape_, outputs[0], 1, triple, 1, x);
    triple.reset();
    outputs[2] = room();
    combine(tape_, outputs[2], 5, x, 0, x);
  }

 private:
  Tape* tape_;
};

// 2 x, 5 x, g -> 2 x + g and 7 x + 2 g; memory is freed as soon as it has been read.
class Backward final : public backend::CompiledGraph {
 public:
  explicit Backward(Tape* tape) : tape_(tape) {}
  void run(at::Tensor* inputs, const int64_t*, at::Tensor* outputs) const override {
    at::Tensor twice = std::move(inputs[0]), five = std::move(inputs[1]), g = std::move(inputs[2]);
    outputs[0] = leaving_room();
    combine(tape_, outputs[0], 1, twice, 1, g);
    at::Tensor sum = room();
    combine(tape_, sum, 1, twice, 1, g);
    twice.reset();
    at::Tensor more = room();
    combine(tape_, more, 1, five, 1, sum);
    five.reset(), sum.reset();
    at::Tensor last = room();
    combine(tape_, last, 1, more, 1, g);
    more.reset();
    outputs[1] = leaving_room();
    combine(tape_, outputs[1], 1, last, 0, last);
  }

 private:
  Tape* tape_;
};

struct Pending {
  at::Tensor x;  // as it was
  std::vector<at::Tensor> saved;
};

class InnerMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    c10::SetCPUAllocator(usual_memory(), 255);
    x_ = at::zeros({kElements});
    auto graph = [](const std::string& inputs, const std::string& outputs) {
      std::string text;
      for (const char input : inputs) text += std::string("%") + input + ": f32[64]{1} cpu = input a" + input + "\n";
      return ir::parse(text + "return (" + outputs + ")\n");
    };
    forward_graph_ = graph("0", "%0, %0, %0");
    backward_graph_ = graph("012", "%0, %1");
    forward_ = make_replayed(std::make_unique<Forward>(&tape_), *forward_graph_, c10::DeviceType::CPU, recorder_, 1);
    backward_ = make_replayed(std::make_unique<Backward>(&tape_), *backward_graph_, c10::DeviceType::CPU, recorder_);
  }
  void TearDown() override { c10::SetCPUAllocator(before_, 255); }

  Pending forward(at::Tensor* y) {
    x_.copy_(at::rand({kElements}));
    at::Tensor inputs[] = {x_}, outputs[3];
    forward_->run(inputs, nullptr, outputs);
    EXPECT_TRUE(at::allclose(outputs[0], 4 * x_));
    *y = outputs[0];
    return {x_.clone(), {outputs[1], outputs[2]}};
  }

  std::vector<at::Tensor> backward(const Pending& pending, std::vector<at::Tensor> saved) {
    const at::Tensor g = at::rand({kElements});
    at::Tensor inputs[] = {std::move(saved[0]), std::move(saved[1]), g}, outputs[2];
    saved.clear();
    backward_->run(inputs, nullptr, outputs);
    EXPECT_TRUE(at::allclose(outputs[0], 2 * pending.x + g));
    EXPECT_TRUE(at::allclose(outputs[1], 7 * pending.x + 2 * g));
    return {outputs[0], outputs[1]};
  }

  uint64_t replays() const { return backend::counters().replays; }

  c10::Allocator* const before_ = c10::GetCPUAllocator();
  Tape tape_;
  std::shared_ptr<TapeRecorder> recorder_ = std::make_shared<TapeRecorder>(&tape_);
  std::unique_ptr<ir::Graph> forward_graph_, backward_graph_;
  std::unique_ptr<backend::CompiledGraph> forward_, backward_;
  at::Tensor x_;
};

TEST_F(InnerMemory, ABackwardUsesUpWhatItsForwardSaved) {
  const uint64_t before = replays();
  at::Tensor y;
  for (int i = 0; i < 10; ++i) {
    y.reset();
    Pending pending = forward(&y);
    backward(pending, std::move(pending.saved));
  }
  EXPECT_EQ(recorder_->recorded, 2);
  EXPECT_EQ(replays() - before, 16);
  // The forward's inner memory and its result's; the backward's results', and none in between beyond the forward's.
  const size_t each = kElements * sizeof(float);
  ASSERT_EQ(recorder_->pools.size(), 3);
  EXPECT_EQ(recorder_->pools[0]->bytes(), 2 * each + each);
  EXPECT_EQ(recorder_->pools[1]->bytes(), each);
  EXPECT_EQ(recorder_->pools[2]->bytes(), 2 * each);
}

TEST_F(InnerMemory, ABackwardThatRunsAgainFindsWhatItReads) {
  at::Tensor y;
  for (int i = 0; i < 8; ++i) {
    Pending pending = forward(&y);
    for (int again = 0; again < 3; ++again) backward(pending, pending.saved);
    if (i % 2) backward(pending, std::move(pending.saved));
  }
}

TEST_F(InnerMemory, SeveralForwardsBeforeTheirBackwards) {
  for (const bool last_first : {false, true}) {
    at::Tensor y;
    for (int i = 0; i < 8; ++i) {
      std::deque<Pending> pending;
      for (int k = 0; k < 3; ++k) pending.push_back(forward(&y));
      while (!pending.empty()) {
        Pending one = std::move(last_first ? pending.back() : pending.front());
        last_first ? pending.pop_back() : pending.pop_front();
        backward(one, std::move(one.saved));
      }
    }
  }
}

TEST_F(InnerMemory, ResultsThatAreKeptStay) {
  std::vector<at::Tensor> kept, expected;
  const uint64_t before = replays();
  at::Tensor y;
  for (int i = 0; i < 12; ++i) {
    Pending pending = forward(&y);
    kept.push_back(y);
    for (at::Tensor& gradient : backward(pending, std::move(pending.saved))) kept.push_back(std::move(gradient));
    if (kept.size() > 6)
      kept.erase(kept.begin(), kept.begin() + 3), expected.erase(expected.begin(), expected.begin() + 3);
    while (expected.size() < kept.size()) expected.push_back(kept[expected.size()].clone());
    for (size_t k = 0; k < kept.size(); ++k) EXPECT_TRUE(at::equal(kept[k], expected[k]));
  }
  EXPECT_GE(replays() - before, 18);
}

TEST_F(InnerMemory, ProgramsThatEndEarlierThanWhatTheySaved) {
  at::Tensor y;
  for (int i = 0; i < 4; ++i) forward(&y);
  Pending pending = forward(&y);
  forward_.reset();
  for (int i = 0; i < 4; ++i) backward(pending, pending.saved);
}

// Whatever a program does between calls: all that it holds keeps its values.
TEST_F(InnerMemory, RandomProgramsKeepWhatTheyHold) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SetUp();
    std::mt19937 random(seed);
    std::deque<Pending> pending;
    std::deque<std::pair<at::Tensor, at::Tensor>> kept;
    const auto keep = [&](const at::Tensor& tensor) { kept.emplace_back(tensor, tensor.clone()); };
    for (int step = 0; step < 60; ++step) {
      const auto choice = random() % 8;
      if (choice < 3 || pending.empty()) {
        at::Tensor y;
        pending.push_back(forward(&y));
        if (random() % 3 == 0) keep(y);
      } else {
        const size_t which = random() % pending.size();
        Pending one = pending[which];
        if (choice < 7) pending.erase(pending.begin() + static_cast<long>(which));
        const bool again = choice == 7;
        const auto gradients = again ? backward(one, one.saved) : backward(one, std::move(one.saved));
        if (random() % 3 == 0) keep(gradients[random() % 2]);
      }
      if (pending.size() > 3) pending.pop_front();
      while (kept.size() > random() % 4) kept.pop_front();
      for (const auto& [tensor, value] : kept) ASSERT_TRUE(at::equal(tensor, value)) << "seed " << seed;
      ASSERT_FALSE(HasFailure()) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace graphlift::cuda::inner_memory_test
