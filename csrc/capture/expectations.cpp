// Owns: see expectations.h.
#include "capture/expectations.h"

#include <algorithm>
#include <span>

#include "capture/calls.h"
#include "capture/depth.h"
#include "cpython/decode.h"
#include "torch/ambient_state.h"
#include "torch/expectations.h"

namespace graphlift::capture {

namespace {

using cpython::Decoded;
using cpython::Instruction;
using cpython::Micro;
using cpython::MicroOp;

constexpr int kLongest = 200;  // instructions of a side that raises

std::span<const MicroOp> micros_of(const Decoded& decoded, const Instruction& instruction) {
  return std::span(decoded.micros)
      .subspan(static_cast<size_t>(instruction.micro_begin),
               static_cast<size_t>(instruction.micro_end - instruction.micro_begin));
}

// Control that comes to `unit` raises, whatever the values are.
bool only_raises(const Decoded& decoded, int unit) {
  for (int steps = 0; steps < kLongest; ++steps) {
    const Instruction& instruction = decoded.at_unit(unit);
    unit = instruction.next;
    for (const MicroOp& micro : micros_of(decoded, instruction)) {
      if (micro.micro == Micro::Raise) return true;
      const int target = cpython::jump_target(micro);
      if (target >= 0 && micro.micro != Micro::Jump) return false;
      if (target >= 0) unit = target;
    }
    const bool jumps = unit != instruction.next;
    if (!jumps && !cpython::falls_through(decoded, instruction)) return false;
  }
  return false;
}

// The truth for which the branch at `unit` does not raise; none: it is no branch, or both sides or none of them do.
std::optional<bool> truth_without_raise(const Decoded& decoded, int unit) {
  const Instruction* instruction = &decoded.at_unit(unit);
  const auto is_bool = [&] {
    const auto all = micros_of(decoded, *instruction);
    return all.size() == 1 && all[0].micro == Micro::ToBool;
  };
  if (is_bool()) instruction = &decoded.at_unit(instruction->next);
  for (const MicroOp& micro : micros_of(decoded, *instruction)) {
    const bool if_true = micro.micro == Micro::PopJumpIfTrue;
    if (!if_true && micro.micro != Micro::PopJumpIfFalse) continue;
    const bool target = only_raises(decoded, micro.arg), next = only_raises(decoded, instruction->next);
    if (target == next) return std::nullopt;
    return target ? !if_true : if_true;
  }
  return std::nullopt;
}

bool may_expect(const Capture& c) {
  const bool plain = c.checkpoints.empty() && c.open_levels.empty() && c.hooks.empty() && !c.deriving;
  return c.seen && !c.seen->expects_nothing && plain && !c.tracer->is_scouting() && !c.tracer->calls() &&
         !torch_layer::in_transform();
}

}  // namespace

std::optional<bool> expected_truth(Capture& c, PyObject* stand_in) {
  if (!may_expect(c) || c.frames.empty() || c.standing.size() < c.frames.size()) return std::nullopt;
  const Standing& at = c.standing[c.frames.size() - 1];
  if (at.frame.raw() != c.frames.back().raw()) return std::nullopt;
  const std::optional<bool> truth = truth_without_raise(cpython::decode(at.frame.code()), at.unit);
  return truth && c.tracer->expect(stand_in, *truth, c.recorded) ? truth : std::nullopt;
}

bool may_rely(Capture& c, const torch_layer::Traced& traced) {
  if (!torch_layer::has_expectations(*traced.joint)) return true;
  const bool writes = std::any_of(traced.inputs.begin(), traced.inputs.end(), [](const torch_layer::InputPlan& input) {
    return input.mutated_data || input.mutated_metadata;
  });
  if (!writes && torch_layer::act_of(*traced.joint).empty()) return true;
  c.seen->expects_nothing = true;
  c.again = true;
  return false;
}

}  // namespace graphlift::capture
