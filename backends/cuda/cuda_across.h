// Owns: code of reductions across rows. A block walks over rows, each thread always along the same places of a row, so
// that it adds up these in registers; what it has then goes to memory, as long as a row per block, and a second launch
// joins the blocks, in their order. Must not: know what a row computes.
#pragma once

#include "backends/cuda/cuda_place.h"

namespace graphlift::cuda {

class AcrossWriter : protected PlaceWriter {
 protected:
  AcrossWriter(const codegen::Kernel& kernel, const Schedule& schedule, const std::vector<bool>& by_value);

  // Around what is done for a row. Memory in which a block's threads meet is used in turns: a row has one barrier at
  // least.
  void open_walk();
  void close_walk();
  // The second launch: its body, and how many blocks it has.
  ir::Sym emit_walkers_join();
  ir::Sym across_bytes() const;  // of the workspace

  static constexpr int kJoinThreads = 256;

 private:
  static constexpr int kJoinLines = 32;
  const codegen::ScalarNode& node(int i) const { return kernel_.nodes[static_cast<size_t>(i)]; }
  void open_ahead();
  void copy_row(const std::string& first, const std::string& stage);
  void read_row(const std::string& first);
  void open_steps(const std::string& condition);
  std::string slot(int i);
  void leave(int i);

  std::vector<int> across_;  // the reductions
};

}  // namespace graphlift::cuda
