// Convolutions and their gradients against torch in float64: layouts, strides, padding, dilation, groups, post-ops.
#include "backends/cpu/convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "backend/backend.h"
#include "backends/cpu/weight_copies.h"
#include "base/text.h"
#include "cpu/product.h"

namespace graphlift::cpu {
namespace {

struct Shape {
  std::vector<int64_t> input;  // [batch, channels, space...]
  int64_t out = 8;
  std::vector<int64_t> window;
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups = 1;
};

StridedTensor strided(const at::Tensor& it) { return {it.sizes().vec(), it.strides().vec()}; }

// Channels behind space in memory, for any rank.
at::Tensor channels_last(const at::Tensor& it) { return it.movedim(1, -1).contiguous().movedim(-1, 1); }

struct Convolved {
  at::Tensor input, weight, bias, output;  // output: NaN
  ConvolutionSpec spec;

  Convolved(const Shape& shape, bool last, bool with_bias, at::ScalarType dtype = at::kFloat) {
    std::vector<int64_t> weights = {shape.out, shape.input[1] / shape.groups};
    weights.insert(weights.end(), shape.window.begin(), shape.window.end());
    input = at::randn(shape.input).to(dtype);
    weight = at::randn(weights).to(dtype);
    if (with_bias) bias = at::randn({shape.out}).to(dtype);
    spec.stride = shape.stride;
    spec.padding = shape.padding;
    spec.dilation = shape.dilation;
    spec.groups = shape.groups;
    spec.bias = with_bias;
    spec.dtype = dtype_of(input);
    output = at::full_like(expected().to(dtype), std::numeric_limits<double>::quiet_NaN());
    if (last) {
      input = channels_last(input);
      output = channels_last(output);
    }
    describe();
  }
  void describe() {
    spec.input = strided(input);
    spec.weight = strided(weight);
    spec.output = strided(output);
  }
  at::Tensor expected() const {
    std::optional<at::Tensor> b;
    if (bias.defined()) b = bias.to(at::kDouble);
    return at::convolution(input.to(at::kDouble), weight.to(at::kDouble), b, spec.stride, spec.padding, spec.dilation,
                           false, std::vector<int64_t>(spec.stride.size(), 0), spec.groups);
  }
  // Of input, weight, bias for a gradient of output.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients(const at::Tensor& grad) const {
    return at::convolution_backward(grad.to(at::kDouble), input.to(at::kDouble), weight.to(at::kDouble),
                                    at::IntArrayRef({weight.size(0)}), spec.stride, spec.padding, spec.dilation, false,
                                    std::vector<int64_t>(spec.stride.size(), 0), spec.groups, {true, true, true});
  }
};

const std::vector<Shape> kShapes = {
    {{2, 3, 9, 8}, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{2, 16, 9, 8}, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{2, 16, 9, 8}, 32, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {{1, 16, 11, 12}, 20, {3, 2}, {2, 1}, {0, 1}, {2, 1}},
    {{2, 16, 7, 7}, 16, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {{2, 16, 7, 7}, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 4},
    {{2, 16, 7, 7}, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 16},
    {{2, 1, 5, 5}, 1, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{2, 8, 20}, 16, {5}, {2}, {2}, {1}},
    {{1, 4, 6, 5, 7}, 8, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
};

TEST(Convolution, Forward) {
  int made = 0, count = 0;
  for (const Shape& shape : kShapes) {
    for (bool last : {false, true}) {
      for (bool bias : {false, true}) {
        Convolved it(shape, last, bias);
        std::string why;
        const auto convolution = find_convolution(it.spec, &why);
        ++count;
        if (!convolution) {
          EXPECT_NE(why, "");
          continue;
        }
        ++made;
        for (int run = 0; run < 2; ++run) {
          convolution->run({.input = it.input.data_ptr(),
                            .weight = it.weight.data_ptr(),
                            .bias = bias ? it.bias.data_ptr() : nullptr,
                            .output = it.output.data_ptr()});
          EXPECT_LE(error(it.output, it.expected()), 1e-5) << it.spec.str() << ' ' << convolution->implementation();
        }
      }
    }
  }
  EXPECT_EQ(made, count);
}

// Forward and the input's gradient, with a weight that is changed on the way.
TEST(Convolution, RememberedWeightsFollowTheirVersion) {
  auto& used = backend::counters().remembered_weights;
  const uint64_t before = used;
  for (const Shape& shape : kShapes) {
    for (bool last : {false, true}) {
      Convolved it(shape, last, false);
      const auto forward = find_convolution(it.spec);
      it.spec.kind = ConvolutionKind::BackwardInput;
      const auto backward = find_convolution(it.spec);
      if (!forward || !backward) continue;
      WeightCopies copies[2];
      const at::Tensor grad = at::randn_like(it.output);
      at::Tensor out = at::zeros_like(it.input);
      for (int run = 0; run < 9; ++run) {
        ConvolutionOperands operands{.input = it.input.data_ptr(),
                                     .weight = it.weight.data_ptr(),
                                     .output = it.output.data_ptr(),
                                     .weight_tensor = &it.weight,
                                     .copies = &copies[0]};
        forward->run(operands);
        EXPECT_LE(error(it.output, it.expected()), 1e-5) << it.spec.str() << ' ' << forward->implementation();
        operands.input = out.data_ptr(), operands.output = grad.data_ptr(), operands.copies = &copies[1];
        backward->run(operands);
        EXPECT_LE(error(out, std::get<0>(it.gradients(grad))), 1e-5) << it.spec.str();
        if (run == 3) it.weight.mul_(1.5);
        if (run == 6) it.weight.set_data(at::randn_like(it.weight));
      }
    }
  }
  EXPECT_GE(used - before, kShapes.size() * 5);
}

TEST(Convolution, Gradients) {
  int made = 0, count = 0;
  for (const Shape& shape : kShapes) {
    for (bool last : {false, true}) {
      for (bool bias : {false, true}) {
        Convolved it(shape, last, bias);
        it.output.copy_(at::randn(it.output.sizes()));
        const auto [input, weight, bias_gradient] = it.gradients(it.output);
        count += bias ? 1 : 2;
        it.spec.kind = ConvolutionKind::BackwardWeights;
        if (const auto found = find_convolution(it.spec)) {
          ++made;
          at::Tensor out = at::zeros_like(it.weight), out_bias = at::zeros({shape.out});
          found->run({.input = it.input.data_ptr(),
                      .weight = out.data_ptr(),
                      .bias = out_bias.data_ptr(),
                      .output = it.output.data_ptr()});
          EXPECT_LE(error(out, weight), 1e-5) << it.spec.str() << ' ' << found->implementation();
          if (bias) EXPECT_LE(error(out_bias, bias_gradient), 1e-5) << it.spec.str();
        }
        if (bias) continue;
        it.spec.kind = ConvolutionKind::BackwardInput;
        if (const auto found = find_convolution(it.spec)) {
          ++made;
          at::Tensor out = at::zeros_like(it.input);
          found->run({.input = out.data_ptr(), .weight = it.weight.data_ptr(), .output = it.output.data_ptr()});
          EXPECT_LE(error(out, input), 1e-5) << it.spec.str() << ' ' << found->implementation();
        }
      }
    }
  }
  EXPECT_EQ(made, count);
}

TEST(Convolution, PostOps) {
  for (bool last : {false, true}) {
    Convolved it(kShapes[1], last, true);
    at::Tensor residual = at::randn(it.output.sizes());
    if (last) residual = channels_last(residual);
    it.spec.post = {{.kind = PostOpKind::Relu}};
    auto run = [&](const at::Tensor& expected) {
      const auto found = find_convolution(it.spec);
      ASSERT_TRUE(found);
      const void* operands[] = {residual.data_ptr()};
      found->run({.input = it.input.data_ptr(),
                  .weight = it.weight.data_ptr(),
                  .bias = it.bias.data_ptr(),
                  .output = it.output.data_ptr(),
                  .post = operands});
      EXPECT_LE(error(it.output, expected), 1e-5) << it.spec.str();
    };
    run(it.expected().relu());
    it.output.copy_(residual);
    it.spec.post.push_back({.kind = PostOpKind::Accumulate, .alpha = 1});
    run(it.expected().relu() + residual.to(at::kDouble));
    it.spec.post = {{.kind = PostOpKind::Add, .operand = {ir::DType::float32, residual.strides().vec()}},
                    {.kind = PostOpKind::Relu}};
    if (last)
      run((it.expected() + residual.to(at::kDouble)).relu());
    else
      EXPECT_FALSE(find_convolution(it.spec));
  }
}

TEST(Convolution, BFloat16) {
  Convolved it(kShapes[1], true, false, at::kBFloat16);
  const auto found = find_convolution(it.spec);
  if (!found) GTEST_SKIP() << "no bfloat16 here";
  found->run({.input = it.input.data_ptr(), .weight = it.weight.data_ptr(), .output = it.output.data_ptr()});
  EXPECT_LE(error(it.output, it.expected()), 8e-3);
}

TEST(Convolution, EightThreadsShareOne) {
  const Convolved shape(kShapes[2], false, false);
  const auto found = find_convolution(shape.spec);
  ASSERT_TRUE(found);
  std::vector<double> worst(8, 0.0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const Convolved own(kShapes[2], false, false);
        found->run({.input = own.input.data_ptr(), .weight = own.weight.data_ptr(), .output = own.output.data_ptr()});
        worst[t] = std::max(worst[t], error(own.output, own.expected()));
      }
    });
  }
  for (std::thread& it : threads) it.join();
  for (double it : worst) EXPECT_LE(it, 1e-5);
}

TEST(Convolution, WrongSpecsAreRefusedWithAReason) {
  std::string why;
  Convolved it(kShapes[0], false, false);
  it.spec.stride.pop_back();
  EXPECT_FALSE(find_convolution(it.spec, &why));
  EXPECT_NE(why, "");
  Convolved empty({{0, 3, 9, 8}, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, false, false);
  EXPECT_FALSE(find_convolution(empty.spec, &why));
}

}  // namespace
}  // namespace graphlift::cpu
