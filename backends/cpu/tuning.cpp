// Owns: see tuning.h.
#include "backends/cpu/tuning.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <limits>
#include <map>

#include "backends/codegen/tuning.h"
#include "backends/cpu/weight_copies.h"
#include "base/log.h"
#include "base/text.h"

namespace graphlift::cpu {
namespace {

using Clock = std::chrono::steady_clock;
using Made = std::shared_ptr<const Contraction>;

// What another implementation has to be ahead by, so that noise changes nothing.
constexpr double kAhead = 0.97;
constexpr double kSecondsPerSpec = 0.05;
constexpr int kMostRounds = 200;

std::atomic<uint64_t> measured_specs = 0;

std::string key_of(const ContractionSpec& spec) { return cat(spec.str(), " threads ", at::get_num_threads()); }

// --- memory to measure on --------------------------------------------------------------------------------------------

at::Tensor memory(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, ir::DType dtype) {
  int64_t extent = 1;
  for (size_t i = 0; i < sizes.size(); ++i) extent += std::max<int64_t>(0, sizes[i] - 1) * strides[i];
  return at::ones({extent}, at::TensorOptions().dtype(static_cast<c10::ScalarType>(dtype)));
}

at::Tensor memory(const ContractionSpec& spec, const MatrixLayout& layout, int64_t rows, int64_t columns,
                  ir::DType dtype) {
  std::vector<int64_t> sizes = spec.batch, strides = layout.batch;
  sizes.insert(sizes.end(), {rows, columns});
  strides.insert(strides.end(), {layout.row, layout.column});
  return memory(sizes, strides, dtype);
}

struct Operands {
  std::vector<at::Tensor> held;
  std::vector<const void*> post;
  ContractionOperands given;
  at::Tensor b;
  WeightCopies copies;

  explicit Operands(const ContractionSpec& spec) {
    auto hold = [&](at::Tensor tensor) {
      held.push_back(std::move(tensor));
      return held.back().data_ptr();
    };
    given.a = hold(memory(spec, spec.a, spec.m, spec.k, spec.dtype));
    given.b = hold(memory(spec, spec.b, spec.k, spec.n, spec.dtype));
    b = held.back();
    if (spec.remember_b) given.b_tensor = &b, given.copies = &copies;
    given.c = hold(memory(spec, spec.c, spec.m, spec.n, spec.out_dtype));
    if (spec.bias != ir::DType::undefined) given.bias = hold(memory({spec.n}, {1}, spec.bias));
    std::vector<int64_t> sizes = spec.batch;
    sizes.insert(sizes.end(), {spec.m, spec.n});
    for (const PostOp& it : spec.post)
      if (operand_of(it.kind) == PostOpOperand::Tensor)
        post.push_back(hold(memory(sizes, it.operand.strides, it.operand.dtype)));
    given.post = post.data();
  }
};

// --- measuring -------------------------------------------------------------------------------------------------------

struct Candidate {
  std::string_view name;
  Made made;
  double best = std::numeric_limits<double>::max();
};

// The least time of each, one run in turn.
void measure(const ContractionSpec& spec, std::vector<Candidate>* candidates) {
  const Operands operands(spec);
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(kSecondsPerSpec));
  for (int round = 0; round < 3 || (round < kMostRounds && Clock::now() < end); ++round) {
    for (Candidate& candidate : *candidates) {
      const Clock::time_point start = Clock::now();
      candidate.made->run(operands.given);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round > 0) candidate.best = std::min(candidate.best, seconds);  // the first one makes code and fills caches
    }
  }
}

Made tune(const ContractionSpec& spec, const std::string& key, const Made& usual) {
  std::vector<Candidate> candidates;
  for (const std::string_view name : contraction_implementations())
    if (Made made = make_contraction(name, spec)) candidates.push_back({name, std::move(made)});
  if (candidates.size() < 2) return usual;
  measure(spec, &candidates);
  ++measured_specs;
  Candidate* best = &candidates.front();
  for (Candidate& candidate : candidates)
    if (candidate.made->implementation() == usual->implementation()) best = &candidate;
  for (Candidate& candidate : candidates)
    if (candidate.best < kAhead * best->best) best = &candidate;
  log(Artifact::PerfHints, [&] {
    std::string text = cat("measured ", key, ": ", best->name, " of");
    for (const Candidate& it : candidates) append(&text, cat(" ", it.name, " ", it.best * 1e6, " us"));
    return text;
  });
  codegen::remember_choice(key, std::string(best->name));
  return best->made;
}

}  // namespace

std::shared_ptr<const Contraction> tuned_contraction(const ContractionSpec& spec) {
  Made usual = find_contraction(spec);
  if (!usual) return nullptr;
  // Held by the GIL.
  static auto& known = *new std::map<std::string, Made>;
  const std::string key = key_of(spec);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  Made chosen;
  if (const std::string name = codegen::remembered_choice(key); !name.empty()) chosen = make_contraction(name, spec);
  if (!chosen) chosen = tune(spec, key, usual);
  return known.emplace(key, std::move(chosen)).first->second;
}

uint64_t tunings() { return measured_specs; }

}  // namespace graphlift::cpu
