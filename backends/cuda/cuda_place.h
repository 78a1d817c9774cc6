// Owns: where a thread is: its row, columns or elements, how many blocks there are, and the indices of kept axes. Must
// not: write loops, or values.
#pragma once

#include "backends/cuda/cuda_values.h"

namespace graphlift::cuda {

inline constexpr int64_t kSlotBytes = 8;  // of the workspace, per partial result

class PlaceWriter {
 protected:
  PlaceWriter(const codegen::Kernel& kernel, const Schedule& schedule, const std::vector<bool>& by_value)
      : kernel_(kernel), schedule_(schedule), values_(kernel, schedule_, by_value) {}

  bool is_rows() const { return schedule_.shape == Shape::Rows; }
  int lines() const { return schedule_.threads / schedule_.across; }  // threads over the rows of a column
  ir::Sym rows() const { return product(kernel_, schedule_.kept); }
  ir::Sym elements() const { return product(kernel_, schedule_.inner); }  // of a row
  ir::Sym steps() const;
  int places_per_block() const;
  ir::Sym blocks() const;
  bool is_exact() const;  // no block has threads without a place

  void line(const std::string& text) { values_.line(text); }
  void emit_place();
  // The place of a thread in a block whose first is `first`, of rows or columns. `beyond`: it may be behind the last.
  void emit_place_from(const std::string& first, bool beyond = false);

  const codegen::Kernel& kernel_;
  Schedule schedule_;  // of the launch that is written
  ValueWriter values_;

 private:
  ir::Sym places() const;  // rows, or vectors of columns or elements
  bool is_tiled() const { return schedule_.tile_axis >= 0; }
  ir::Sym vectors() const;
  ir::Sym vector_tiles() const { return ceildiv(vectors(), kTileVectors); }
  ir::Sym element_tiles() const { return ceildiv(tile_elements(), kTileElements); }
  const ir::Sym& tile_elements() const { return kernel_.axes[static_cast<size_t>(schedule_.tile_axis)].extent; }
  std::vector<int> beside_tile() const;
  void emit_tile_place();
};

}  // namespace graphlift::cuda
