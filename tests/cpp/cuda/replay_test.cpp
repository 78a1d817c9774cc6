// Recordings beside the program itself, on a tape in place of a GPU: results, memory that is in use, inputs that move.
#include "backends/cuda/replay.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace graphlift::cuda {
namespace {

// What a queue of work is here: while recording, work is kept and not done.
struct Tape {
  std::vector<std::function<void()>>* recording = nullptr;
  void launch(std::function<void()> work) {
    if (recording)
      recording->push_back(std::move(work));
    else
      work();
  }
};

class TapeLaunches final : public Launches {
 public:
  TapeLaunches(std::vector<std::function<void()>> work, int* replays) : work_(std::move(work)), replays_(replays) {}
  void replay() const override {
    ++*replays_;
    for (const auto& one : work_) one();
  }

 private:
  std::vector<std::function<void()>> work_;
  int* replays_;
};

class TapeRecorder final : public Recorder {
 public:
  explicit TapeRecorder(Tape* tape) : tape_(tape) {}
  std::unique_ptr<Launches> record(const std::function<void()>& run, const Launches*) const override {
    if (refuses) throw std::runtime_error("a synchronization");
    std::vector<std::function<void()>> work;
    tape_->recording = &work;
    run();
    tape_->recording = nullptr;
    ++recorded;
    return std::make_unique<TapeLaunches>(std::move(work), &replays);
  }
  std::optional<const void*> queue() const override { return stream; }
  void copy(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  mutable int recorded = 0, replays = 0;
  bool refuses = false;
  std::optional<const void*> stream = nullptr;

 private:
  Tape* tape_;
};

// 2 * a + b over what lies there when the work is done.
class Program final : public backend::CompiledGraph {
 public:
  explicit Program(Tape* tape) : tape_(tape) {}
  void run(at::Tensor* inputs, const int64_t*, at::Tensor* outputs) const override {
    outputs[0] = at::empty({3}, at::kFloat);
    const at::Tensor a = std::move(inputs[0]), b = std::move(inputs[1]);
    auto* to = outputs[0].mutable_data_ptr<float>();
    const auto *from = a.const_data_ptr<float>(), *more = b.const_data_ptr<float>();
    const int64_t step = a.stride(0);
    tape_->launch([=] {
      for (int64_t i = 0; i < 3; ++i) to[i] = 2 * from[i * step] + more[i];
    });
  }

 private:
  Tape* tape_;
};

class Replay : public ::testing::Test {
 protected:
  void SetUp() override {
    graph_ = ir::parse(
        "%0: f32[3]{1} cpu = input a\n%1: f32[3]{1} cpu = input b\n"
        "%2: f32[3]{1} cpu = aten::add.Tensor(%1, %0, 2)\nreturn (%2)\n");
    program_ = make_replayed(std::make_unique<Program>(&tape_), *graph_, c10::DeviceType::CPU, recorder_);
  }

  at::Tensor call(const at::Tensor& a, const at::Tensor& b) {
    at::Tensor inputs[] = {a, b}, output;
    program_->run(inputs, nullptr, &output);
    EXPECT_TRUE(at::equal(output, 2 * a + b));
    return output;
  }

  Tape tape_;
  std::shared_ptr<TapeRecorder> recorder_ = std::make_shared<TapeRecorder>(&tape_);
  std::unique_ptr<ir::Graph> graph_;
  std::unique_ptr<backend::CompiledGraph> program_;
};

TEST_F(Replay, TheThirdCallIsRecordedAndLaterOnesAreReplayed) {
  const at::Tensor a = at::rand({3}), b = at::rand({3});
  for (int i = 0; i < 6; ++i) {
    at::Tensor(a).add_(1);  // in its place
    call(a, b);
  }
  EXPECT_EQ(recorder_->recorded, 1);
  EXPECT_EQ(recorder_->replays, 4);
}

TEST_F(Replay, ResultsInUseAreNotWrittenOver) {
  const at::Tensor a = at::rand({3}), b = at::rand({3});
  std::vector<at::Tensor> kept, expected;
  for (int i = 0; i < 12; ++i) {
    at::Tensor(a).add_(1);
    kept.push_back(call(a, b)[0]);  // a view keeps the memory
    expected.push_back(kept.back().clone());
  }
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(kept[i], expected[i]));
  EXPECT_EQ(recorder_->recorded, 4);  // beyond those the program runs as it is
  kept.clear();
  const int before = recorder_->replays;
  call(a, b);
  EXPECT_EQ(recorder_->replays, before + 1);
}

TEST_F(Replay, TwoRecordingsTakeTurnsInALoop) {
  const at::Tensor a = at::rand({3}), b = at::rand({3});
  at::Tensor out;
  for (int i = 0; i < 20; ++i) out = call(a, b);  // the last one lives while the next is made
  EXPECT_EQ(recorder_->recorded, 2);
  EXPECT_EQ(recorder_->replays, 18);
}

TEST_F(Replay, InputsThatMoveAreCopied) {
  const at::Tensor weight = at::rand({3});
  std::vector<at::Tensor> alive;
  for (int i = 0; i < 10; ++i) {
    alive.push_back(at::rand({3}));
    call(alive.back(), weight);
  }
  EXPECT_EQ(recorder_->recorded, 1);
  EXPECT_EQ(recorder_->replays, 8);
  call(alive[0], at::rand({3}));  // the weight moves: another recording copies that, too
  call(alive[1], at::rand({3}));
  EXPECT_EQ(recorder_->recorded, 2);
}

TEST_F(Replay, StridesOfACopiedInputAreKept) {
  const at::Tensor weight = at::rand({3});
  std::vector<at::Tensor> alive;
  for (int i = 0; i < 6; ++i) {
    alive.push_back(at::rand({1}).expand({3}));  // as the gradient of a sum
    call(alive.back(), weight);
  }
  EXPECT_EQ(recorder_->replays, 4);
}

TEST_F(Replay, ARecordingServesItsQueueAlone) {
  const at::Tensor a = at::rand({3}), b = at::rand({3});
  for (int i = 0; i < 4; ++i) call(a, b);
  int other = 0;
  recorder_->stream = &other;
  call(a, b);
  EXPECT_EQ(recorder_->recorded, 2);
  recorder_->stream = std::nullopt;  // the program itself records
  const int before = recorder_->replays;
  call(a, b);
  EXPECT_EQ(recorder_->replays, before);
}

TEST_F(Replay, AnInputThatIsMissingInACallIsNotCopied) {
  const at::Tensor b = at::rand({3});
  std::vector<at::Tensor> alive;
  for (int i = 0; i < 4; ++i) call(alive.emplace_back(at::rand({3})), b);
  EXPECT_EQ(recorder_->recorded, 1);
  at::Tensor inputs[] = {at::Tensor(), b}, output;
  EXPECT_ANY_THROW(program_->run(inputs, nullptr, &output));  // the program itself says so
  EXPECT_EQ(recorder_->replays, 2);
}

TEST_F(Replay, AnInputThatIsWrittenToIsNeverACopy) {
  const auto graph = ir::parse(
      "%0: f32[3]{1} cpu = input a\n%1: f32[3]{1} cpu = input b\n"
      "%2: f32[3]{1} cpu = aten::add_.Tensor(%0, %1, 1)\nreturn (%2)\n");
  for (const bool moves : {false, true}) {
    recorder_->recorded = 0;
    auto program = make_replayed(std::make_unique<Program>(&tape_), *graph, c10::DeviceType::CPU, recorder_);
    std::vector<at::Tensor> alive;
    const at::Tensor a = at::rand({3}), b = at::rand({3});
    for (int i = 0; i < 5; ++i) {
      at::Tensor inputs[] = {moves ? alive.emplace_back(at::rand({3})) : a, b}, output;
      program->run(inputs, nullptr, &output);
    }
    EXPECT_EQ(recorder_->recorded, moves ? 0 : 1);
  }
}

TEST_F(Replay, WhatCantBeRecordedRunsAsItIs) {
  recorder_->refuses = true;
  const at::Tensor a = at::rand({3}), b = at::rand({3});
  for (int i = 0; i < 5; ++i) call(a, b);
  EXPECT_EQ(recorder_->replays, 0);
}

TEST_F(Replay, AnInputElsewhereIsRefused) {
  auto program = make_replayed(std::make_unique<Program>(&tape_), *graph_, c10::DeviceType::CUDA, recorder_);
  const at::Tensor a = at::rand({3}), b = at::rand({3});
  for (int i = 0; i < 5; ++i) {
    at::Tensor inputs[] = {a, b}, output;
    program->run(inputs, nullptr, &output);
    EXPECT_TRUE(at::equal(output, 2 * a + b));
  }
  EXPECT_EQ(recorder_->recorded, 0);
}

}  // namespace
}  // namespace graphlift::cuda
