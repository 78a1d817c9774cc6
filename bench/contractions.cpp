// Contractions and convolutions of backends/cpu against torch's own kernels, on memory that is allocated once:
//     ninja -C build/dev bench_contractions
//     GRAPHLIFT_ONEDNN=.venv/lib/libdnnl.so.3 build/dev/tests/bench_contractions [threads]
//     [matmul|few|remembered|batch|tiny|conv|bf16]
// Microseconds, the least of many runs.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>

#include "backends/cpu/contraction.h"
#include "backends/cpu/convolution.h"
#include "backends/cpu/weight_copies.h"

namespace graphlift::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The best of runs of at least 50 us each, for a third of a second.
double best(const std::function<void()>& run) {
  run();
  const Clock::time_point once = Clock::now();
  run();
  const int count = std::max(1, static_cast<int>(5e-5 / seconds_since(once)));
  double least = 1e9;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 5 || seconds_since(begin) < 0.35; ++i) {
    const Clock::time_point start = Clock::now();
    for (int j = 0; j < count; ++j) run();
    least = std::min(least, seconds_since(start) / count);
  }
  return least * 1e6;
}

struct Case {
  int64_t batch, m, n, k;
};

MatrixLayout layout(const at::Tensor& it) {
  return {it.dim() == 3 ? std::vector<int64_t>{it.stride(0)} : std::vector<int64_t>{}, it.stride(-2), it.stride(-1)};
}

// A matrix whose memory is that of its transpose, or not.
at::Tensor matrix(int64_t batch, int64_t rows, int64_t columns, bool transposed, at::ScalarType dtype) {
  if (transposed) std::swap(rows, columns);
  at::Tensor out = batch > 1 ? at::randn({batch, rows, columns}) : at::randn({rows, columns});
  return transposed ? out.to(dtype).transpose(-2, -1) : out.to(dtype);
}

void print_time(double time, double reference) {
  if (time > 0)
    std::printf(" %.2f (%.2f) |", time, time / reference);
  else
    std::printf(" - |");
}

void matmul(const Case& shape, char form, at::ScalarType dtype) {
  const at::Tensor a = matrix(shape.batch, shape.m, shape.k, form == 'A', dtype);
  const at::Tensor b = matrix(shape.batch, shape.k, shape.n, form == 'B', dtype);
  at::Tensor c = at::matmul(a, b);
  ContractionSpec spec;
  spec.dtype = spec.out_dtype = static_cast<ir::DType>(dtype);
  if (shape.batch > 1) spec.batch = {shape.batch};
  spec.m = shape.m, spec.n = shape.n, spec.k = shape.k;
  spec.a = layout(a), spec.b = layout(b), spec.c = layout(c);
  WeightCopies copies;
  const ContractionOperands operands{
      .a = a.data_ptr(), .b = b.data_ptr(), .c = c.data_ptr(), .b_tensor = &b, .copies = &copies};
  const double torch = best([&] { shape.batch > 1 ? at::bmm_out(c, a, b) : at::mm_out(c, a, b); });
  std::printf("| %ldx%ldx%ldx%ld | %s | %.2f |", shape.batch, shape.m, shape.n, shape.k,
              form == 'A'   ? "A^T B"
              : form == 'B' ? "A B^T"
                            : "A B",
              torch);
  for (const char* name : {"gemm", "onednn", "onednn swapped", "onednn packed"}) {
    spec.remember_b = std::strcmp(name, "onednn packed") == 0;
    const auto made = make_contraction(name, spec);
    print_time(made ? best([&] { made->run(operands); }) : 0, torch);
  }
  spec.remember_b = false;
  const auto found = find_contraction(spec);
  std::printf(" %s |\n", found ? found->implementation().c_str() : "torch");
  std::fflush(stdout);
}

void matmuls(const std::vector<Case>& shapes, at::ScalarType dtype, std::string_view forms = "NBA") {
  std::printf(
      "| batch x m x n x k | form | torch | gemm | onednn | swapped | packed | chosen "
      "|\n|---|---|---|---|---|---|---|---|\n");
  for (const Case& shape : shapes)
    for (char form : forms) matmul(shape, form, dtype);
}

void making() {
  std::printf("| making | us |\n|---|---|\n");
  int64_t m = 40;
  auto make = [&](bool fresh) {
    ContractionSpec spec;
    spec.m = m += fresh, spec.n = 96, spec.k = 64;
    spec.a.row = 64, spec.b.row = 96, spec.c.row = 96;
    spec.post = {{.kind = PostOpKind::GeluErf}};
    const Clock::time_point start = Clock::now();
    const bool made = find_contraction(spec) != nullptr;
    return made ? seconds_since(start) * 1e6 : -1;
  };
  make(true);
  double fresh = 1e9, known = 1e9;
  for (int i = 0; i < 30; ++i) fresh = std::min(fresh, make(true));
  for (int i = 0; i < 300; ++i) known = std::min(known, make(false));
  std::printf("| a new spec | %.1f |\n| a known spec | %.2f |\n", fresh, known);
}

StridedTensor strided(const at::Tensor& it) { return {it.sizes().vec(), it.strides().vec()}; }

struct ConvolutionCase {
  int64_t batch, in, size, out, stride;
};

void convolution(const ConvolutionCase& shape, at::MemoryFormat format) {
  const at::Tensor x = at::randn({shape.batch, shape.in, shape.size, shape.size}).contiguous(format);
  const at::Tensor w = at::randn({shape.out, shape.in, 3, 3});
  const std::vector<int64_t> stride(2, shape.stride), one(2, 1), none(2, 0);
  at::Tensor y = at::convolution(x, w, {}, stride, one, one, false, none, 1).contiguous(format);
  at::Tensor gx = at::empty_like(x), gw = at::empty_like(w);
  auto backward = [&](bool input) {
    at::convolution_backward(y, x, w, at::OptionalIntArrayRef(), stride, one, one, false, none, 1,
                             {input, !input, false});
  };
  const std::function<void()> torch[] = {[&] { at::convolution(x, w, {}, stride, one, one, false, none, 1); },
                                         [&] { backward(true); }, [&] { backward(false); }};
  const ConvolutionOperands operands[] = {{x.data_ptr(), w.data_ptr(), nullptr, y.data_ptr()},
                                          {gx.data_ptr(), w.data_ptr(), nullptr, y.data_ptr()},
                                          {x.data_ptr(), gw.data_ptr(), nullptr, y.data_ptr()}};
  const char* names[] = {"forward", "input", "weights"};
  for (int kind = 0; kind < 3; ++kind) {
    ConvolutionSpec spec{static_cast<ConvolutionKind>(kind)};
    spec.input = strided(x), spec.weight = strided(w), spec.output = strided(y);
    spec.stride = stride, spec.padding = one, spec.dilation = one;
    const auto found = find_convolution(spec);
    const double reference = best(torch[kind]);
    std::printf("| %ldx%ldx%ldx%ld to %ld, stride %ld | %s | %s | %.0f |", shape.batch, shape.in, shape.size,
                shape.size, shape.out, shape.stride, format == at::MemoryFormat::ChannelsLast ? "NHWC" : "NCHW",
                names[kind], reference);
    print_time(found ? best([&] { found->run(operands[kind]); }) : 0, reference);
    WeightCopies copies;
    ConvolutionOperands remembering = operands[kind];
    remembering.weight_tensor = &w, remembering.copies = &copies;
    print_time(found && kind != 2 ? best([&] { found->run(remembering); }) : 0, reference);
    std::printf(" %s |\n", found ? found->implementation().c_str() : "torch");
    std::fflush(stdout);
  }
}

void convolutions() {
  std::printf(
      "| convolution 3x3 | layout | what | torch | here | weight remembered | kernel "
      "|\n|---|---|---|---|---|---|---|\n");
  for (const ConvolutionCase& shape : {ConvolutionCase{8, 3, 32, 16, 1},
                                       {8, 16, 32, 16, 1},
                                       {8, 16, 32, 32, 2},
                                       {8, 32, 16, 32, 1},
                                       {1, 64, 14, 64, 1},
                                       {1, 256, 14, 256, 1},
                                       {1, 512, 7, 512, 1},
                                       {64, 3, 64, 64, 1},
                                       {64, 64, 64, 64, 1},
                                       {64, 64, 64, 128, 2},
                                       {64, 128, 32, 128, 1}})
    for (at::MemoryFormat format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast})
      convolution(shape, format);
}

const std::vector<Case> kLarge = {{1, 64, 4096, 1024}, {1, 64, 4096, 4096}, {1, 64, 1024, 4096},  {1, 4096, 1024, 64},
                                  {1, 64, 1024, 1024}, {1, 256, 768, 256},  {1, 256, 256, 256},   {1, 256, 1024, 256},
                                  {1, 256, 256, 1024}, {1, 256, 4096, 256}, {1, 8192, 2304, 768}, {1, 768, 2304, 8192},
                                  {1, 8192, 3072, 768}};
const std::vector<Case> kBatched = {{16, 128, 128, 32}, {16, 128, 32, 128}, {96, 128, 128, 64}};
const std::vector<Case> kFew = {{1, 1, 1024, 1024},   {1, 1, 4096, 1024},  {1, 2, 1024, 1024},  {1, 4, 1024, 1024},
                                {1, 8, 1024, 1024},   {1, 16, 1024, 1024}, {1, 32, 1024, 1024}, {1, 64, 10, 1024},
                                {1, 128, 1024, 1024}, {1, 1, 64, 64}};
const std::vector<Case> kRemembered = [] {
  std::vector<Case> out;
  for (int64_t m : {1, 4, 16, 32, 64, 128, 256})
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{256, 256}, {1024, 1024}, {1024, 4096}, {4096, 4096}})
      out.push_back({1, m, n, k});
  return out;
}();
const std::vector<Case> kTiny = {{1, 8, 32, 16}, {1, 8, 32, 32}, {1, 8, 4, 32}, {1, 8, 64, 64}, {1, 32, 64, 64}};

}  // namespace
}  // namespace graphlift::cpu

int main(int argc, char** argv) {
  using namespace graphlift::cpu;
  at::set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  const std::string what = argc > 2 ? argv[2] : "all";
  auto wants = [&](const char* name) { return what == "all" || what == name; };
  std::printf("%d threads\n\n", at::get_num_threads());
  if (wants("tiny")) matmuls(kTiny, at::kFloat), making();
  if (wants("few")) matmuls(kFew, at::kFloat);
  if (wants("remembered")) matmuls(kRemembered, at::kFloat, "NB");
  if (wants("batch")) matmuls(kBatched, at::kFloat);
  if (wants("matmul")) matmuls(kLarge, at::kFloat);
  if (wants("bf16")) matmuls({{1, 64, 4096, 1024}, {1, 256, 768, 256}, {1, 8, 64, 64}}, at::kBFloat16);
  if (wants("conv")) convolutions();
}
