// Owns: code of a kernel's nodes and stores at the place where the loops are: loads, scalar primitives, indices. Must
// not: write loops, or know reductions.
#pragma once

#include "backends/cpu/llvm_primitives.h"
#include "backends/cpu/loop_writer.h"
#include "backends/cpu/schedule.h"

namespace graphlift::cpu {

class NodeWriter : protected LoopWriter {
 protected:
  NodeWriter(const codegen::Kernel& kernel, const Schedule& schedule, const Target& target);

  const ir::Sym& extent(int axis) const { return kernel_.axes[static_cast<size_t>(axis)].extent; }
  // A node that is no reduction; `value` has its operands.
  Reg compute(const codegen::ScalarNode& node, int lanes, const Reg* mask, const std::function<Reg(int)>& value);
  void write(int buffer, const codegen::Affine& index, const Reg& value, const Reg* mask, int lanes);
  static std::string base(int buffer) { return "%b" + std::to_string(buffer); }

  const codegen::Kernel& kernel_;
  const Schedule& schedule_;
  std::vector<Reg> index_;  // per axis, as far as loops have it

 private:
  Reg place(const codegen::Affine& index);                  // of the first lane
  Reg lane_steps(const codegen::Affine& index, int lanes);  // from the first lane's place
  Reg places(const codegen::Affine& index, int lanes);
  ir::Sym lane_stride(const codegen::Affine& index) const;
  bool varies_by_lane(int node) const;
  void ask_ahead(const std::string& pointer, const codegen::Affine& index, ir::DType dtype, int lanes);
  // `given`: the values of the node's operands, places from data.
  Reg read(const codegen::ScalarNode& node, const std::vector<Reg>& given, int lanes, const Reg* mask);

  const std::vector<uint64_t> axes_;  // per node, as find_axes() has them
};

}  // namespace graphlift::cpu
