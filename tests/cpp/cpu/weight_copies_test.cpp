// Kept copies of weights: when one is made, shared, believed and freed.
#include "backends/cpu/weight_copies.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "backend/backend.h"

namespace graphlift::cpu {
namespace {

uint64_t bytes() { return backend::counters().remembered_bytes; }

// A call that copies its weight as it lies, and says what it read.
struct Call {
  WeightCopies copies;
  int made = 0;

  // The weight's first number: of the copy, or NaN where there is none.
  float read(const at::Tensor& weight, WeightForm form = 1) {
    const auto copy = copies.find(weight, weight.const_data_ptr(), form, [&] {
      ++made;
      auto out = std::make_shared<WeightCopy>(weight.nbytes());
      std::memcpy(out->data(), weight.const_data_ptr(), weight.nbytes());
      return out;
    });
    return copy ? *static_cast<const float*>(copy->data()) : NAN;
  }
  // The same at the third sight.
  float settle(const at::Tensor& weight, WeightForm form = 1) {
    read(weight, form);
    read(weight, form);
    return read(weight, form);
  }
};

at::Tensor weight(float value) { return at::full({64}, value); }

TEST(WeightCopies, AreMadeAtTheSecondSight) {
  const uint64_t before = bytes();
  {
    Call call;
    const at::Tensor w = weight(1);
    EXPECT_TRUE(std::isnan(call.read(w)));
    EXPECT_EQ(call.made, 0);
    EXPECT_EQ(call.read(w), 1);
    EXPECT_EQ(call.read(w), 1);
    EXPECT_EQ(call.made, 1);
    EXPECT_EQ(bytes() - before, 256u);
  }
  EXPECT_EQ(bytes(), before);
}

TEST(WeightCopies, FollowVersionsMemoryAndCounters) {
  Call call;
  at::Tensor w = weight(1);
  EXPECT_EQ(call.settle(w), 1);
  w.fill_(2);
  EXPECT_TRUE(std::isnan(call.read(w)));
  EXPECT_EQ(call.settle(w), 2);
  w.set_data(weight(3));
  EXPECT_TRUE(std::isnan(call.read(w)));
  EXPECT_EQ(call.settle(w), 3);
  // The same memory under another counter, at the same number.
  const at::Tensor data = w.variable_data();
  while (data._version() < w._version()) data.fill_(4);
  EXPECT_TRUE(std::isnan(call.read(data)));
  EXPECT_EQ(call.settle(data), 4);
  // A view within.
  EXPECT_TRUE(std::isnan(call.read(w.slice(0, 16))));
  for (int i = 0; i < 100; ++i) {
    const at::Tensor other = weight(static_cast<float>(i));  // often at an address that was freed
    EXPECT_TRUE(std::isnan(call.read(other)));
    EXPECT_EQ(call.read(other), static_cast<float>(i));
  }
}

TEST(WeightCopies, InferenceTensorsAreNotRemembered) {
  const c10::InferenceMode mode;
  Call call;
  EXPECT_TRUE(std::isnan(call.settle(weight(1))));
  EXPECT_EQ(call.made, 0);
}

TEST(WeightCopies, AreSharedByCallsAndHaveAForm) {
  const uint64_t before = bytes();
  Call one, two;
  const at::Tensor w = weight(1);
  EXPECT_EQ(one.settle(w), 1);
  EXPECT_EQ(two.settle(w), 1);
  EXPECT_EQ(one.made + two.made, 1);
  EXPECT_EQ(two.settle(w, 2), 1);
  EXPECT_EQ(one.made + two.made, 2);
  EXPECT_EQ(bytes() - before, 512u);
}

TEST(WeightCopies, GoWithTheWeightWhenAnotherIsCopied) {
  const uint64_t before = bytes();
  Call one, two;
  {
    at::Tensor dies = weight(1), changes = weight(2);
    EXPECT_EQ(one.settle(dies), 1);
    EXPECT_EQ(one.settle(changes), 2);
    EXPECT_EQ(bytes() - before, 512u);
    changes.add_(1);
    EXPECT_EQ(two.settle(weight(5)), 5);
    EXPECT_EQ(bytes() - before, 512u);  // of `dies` and the one just made
  }
  EXPECT_EQ(two.settle(weight(6)), 6);
  EXPECT_EQ(bytes() - before, 256u);
}

TEST(WeightCopies, ASilentWriteMakesThemStale) {
  Call one, two;
  at::Tensor w = weight(1), other = weight(9);
  for (Call* call : {&one, &two}) EXPECT_EQ(call->settle(w), 1);
  EXPECT_EQ(one.settle(other), 9);
  static_cast<float*>(w.mutable_data_ptr())[0] = 2;
  backend::note_silent_write(w);
  for (Call* call : {&one, &two}) {
    EXPECT_TRUE(std::isnan(call->read(w)));
    EXPECT_EQ(call->read(w), 2);
  }
  const int made = one.made;
  EXPECT_EQ(one.read(other), 9);
  EXPECT_EQ(one.made, made);
}

TEST(WeightCopies, ManyThreads) {
  Call call;
  const at::Tensor w[] = {weight(1), weight(2), weight(3)};
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      WeightCopies own;
      for (int i = 0; i < 2000; ++i) {
        const at::Tensor& it = w[(t + i) % 3];
        WeightCopies& copies = i % 50 == 0 ? own : call.copies;
        const auto copy = copies.find(it, it.const_data_ptr(), 1 + static_cast<WeightForm>(i / 500), [&] {
          auto out = std::make_shared<WeightCopy>(it.nbytes());
          std::memcpy(out->data(), it.const_data_ptr(), it.nbytes());
          return out;
        });
        wrong += copy && *static_cast<const float*>(copy->data()) != *it.const_data_ptr<float>();
        if (i % 700 == 0) backend::note_silent_write(it);
      }
    });
  for (std::thread& it : threads) it.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace graphlift::cpu
