// Owns: code of reductions across rows. A block of rows has memory of its own among the partial results, as many
// elements as a row, to which each row adds; a second stage joins the blocks, in their order. Must not: write loops
// over rows, or know what a row computes.
#pragma once

#include "backends/cpu/node_writer.h"

namespace graphlift::cpu {

class AcrossWriter : protected NodeWriter {
 protected:
  AcrossWriter(const codegen::Kernel& kernel, const Schedule& schedule, const Target& target);

  // Before a block's rows: its results are those of no row.
  void begin_block(const Reg& block);
  // `x`, of all lanes, is one more element for a reduction across rows, at the place where the loops are.
  void add_across(int node, const Reg& x);
  // A unit of the second stage: one vector of results, and what is made of them.
  void join_blocks(const Reg& unit);

  ir::Sym joined_units() const;
  ir::Sym partial_words() const;
  // The number of the current element in memory that holds a row, padded to whole vectors.
  Reg place_in_row();
  int64_t row_elements() const;

 private:
  const codegen::ScalarNode& node(int i) const { return kernel_.nodes[static_cast<size_t>(i)]; }
  int64_t slot_bytes(int node) const;  // a block's results of one reduction
  std::string slot(int node, const Reg& block);
  Reg join(int node, const Reg& at);

  std::vector<int> across_;           // the reductions
  std::map<int, std::string> slots_;  // of the current block
};

}  // namespace graphlift::cpu
