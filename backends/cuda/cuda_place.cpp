// Owns: see cuda_place.h.
#include "backends/cuda/cuda_place.h"

namespace graphlift::cuda {

using ir::Sym;

Sym PlaceWriter::places() const {
  if (is_rows()) return rows();
  return schedule_.ragged ? ceildiv(rows(), schedule_.lanes) : floordiv(rows(), schedule_.lanes);
}

int PlaceWriter::places_per_block() const {
  if (schedule_.shape == Shape::Elements) return schedule_.threads;
  return is_rows() ? schedule_.rows_per_block() : schedule_.across;
}

Sym PlaceWriter::blocks() const {
  if (is_tiled()) return vector_tiles() * element_tiles() * product(kernel_, beside_tile());
  const Sym all = ceildiv(places(), places_per_block());
  if (schedule_.walkers == 0) return all;
  // Each block leaves results as long as a row, so that a block has a few rows where there are many.
  constexpr int kLeastTurns = 4;
  return min(Sym(schedule_.walkers), max(min(all, Sym(schedule_.least_walkers)), floordiv(all, kLeastTurns)));
}

bool PlaceWriter::is_exact() const { return places().is_constant() && places().constant() % places_per_block() == 0; }

Sym PlaceWriter::steps() const { return is_rows() ? floordiv(elements(), schedule_.lanes) : elements(); }

// --- tiles -----------------------------------------------------------------------------------------------------------
Sym PlaceWriter::vectors() const {
  return floordiv(kernel_.axes[static_cast<size_t>(schedule_.vector_axis)].extent, schedule_.lanes);
}

std::vector<int> PlaceWriter::beside_tile() const {
  std::vector<int> axes;
  for (const int axis : schedule_.kept)
    if (axis != schedule_.vector_axis && axis != schedule_.tile_axis) axes.push_back(axis);
  return axes;
}

void PlaceWriter::emit_tile_place() {
  const std::string a = std::to_string(schedule_.vector_axis), b = std::to_string(schedule_.tile_axis);
  line("const uidx t = threadIdx.x, tiles = blockIdx.x / (uidx)" + values_.number(vector_tiles()) + ";");
  line("const idx vector = (idx)(blockIdx.x % (uidx)" + values_.number(vector_tiles()) + " * " +
       std::to_string(kTileVectors) + " + t / 32 % 2 * 4 + t % 4);");
  line("const idx a" + b + " = (idx)(tiles % (uidx)" + values_.number(element_tiles()) + " * " +
       std::to_string(kTileElements) + " + t / 64 * 8 + t / 4 % 8);");
  line("if (vector >= " + values_.number(vectors()) + " || a" + b + " >= " + values_.number(tile_elements()) +
       ") return;");
  line("const idx a" + a + " = vector * " + std::to_string(schedule_.lanes) + ";");
  line("const idx place = (idx)(tiles / (uidx)" + values_.number(element_tiles()) + ");");
  values_.indices("place", beside_tile());
}

// --- others ----------------------------------------------------------------------------------------------------------
void PlaceWriter::emit_place() {
  if (is_tiled()) return emit_tile_place();
  const int own = places_per_block();
  emit_place_from("(idx)blockIdx.x" + (own > 1 ? " * " + std::to_string(own) : ""));
}

void PlaceWriter::emit_place_from(const std::string& first, bool beyond) {
  std::string place = first;
  if (schedule_.shape == Shape::Elements)
    place += " + (idx)threadIdx.x";
  else if (is_rows() && places_per_block() > 1)
    place += " + (idx)threadIdx.x / " + std::to_string(schedule_.across);
  else if (!is_rows())
    place += " + (idx)threadIdx.x % " + std::to_string(schedule_.across);
  line("const idx place = " + place + ";");
  if (schedule_.shape == Shape::Elements) {
    if (!is_exact()) line("if (place >= " + values_.number(places()) + ") return;");
  } else {
    line("const bool active = " + (is_exact() && !beyond ? "true" : "place < " + values_.number(places())) + ";");
    if (is_rows())
      line("const idx lane = (idx)threadIdx.x % " + std::to_string(schedule_.across) + ";");
    else
      line("const idx line = (idx)threadIdx.x / " + std::to_string(schedule_.across) + ";");
  }
  values_.indices("place", schedule_.kept);
  if (schedule_.peeled) values_.peel();
  if (schedule_.ragged)
    line("const int count = (int)(" + values_.number(rows()) + " - place * " + std::to_string(schedule_.lanes) + ");");
}

}  // namespace graphlift::cuda
