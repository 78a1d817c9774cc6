// Owns: see cuda_across.h. Names: c<i> what a thread has added up, one per element that it has of a row.
#include "backends/cuda/cuda_across.h"

#include <algorithm>

#include "backends/cuda/cuda_expression.h"

namespace graphlift::cuda {

using ir::Sym;
using Kind = codegen::ScalarNode::Kind;

AcrossWriter::AcrossWriter(const codegen::Kernel& kernel, const Schedule& schedule, const std::vector<bool>& by_value)
    : PlaceWriter(kernel, schedule, by_value) {
  for (size_t i = 0; i < kernel.nodes.size(); ++i)
    if (kernel.nodes[i].kind == Kind::Across && values_.is_live(static_cast<int>(i)))
      across_.push_back(static_cast<int>(i));
}

void AcrossWriter::open_walk() {
  const std::string own = std::to_string(schedule_.steps * schedule_.lanes);
  for (const int i : across_) {
    const std::string name = "c" + std::to_string(i);
    line(compute_name(node(i).type) + std::string(" ") + name + "[" + own + "];");
    line("#pragma unroll");
    line("for (int j = 0; j < " + own + "; ++j) " + name + "[j] = " + identity_text(node(i).reduce, node(i).type) +
         ";");
  }
  line("int turn = 0;");
  const std::string per_block = std::to_string(schedule_.rows_per_block());
  line("const idx first = (idx)blockIdx.x * " + per_block + ", stride = " + per_block + " * " +
       values_.number(blocks()) + ";");
  if (schedule_.stages > 0) open_ahead();
  line("for (idx walk = first; walk < " + values_.number(rows()) + "; walk += stride) {");
  if (schedule_.stages > 0) {
    const std::string stages = std::to_string(schedule_.stages), before = std::to_string(schedule_.stages - 1);
    values_.take_next_row();
    copy_row("walk + " + before + " * stride", "(stage + " + before + ") % " + stages);
    read_row("walk + stride");
    line("gl_copies_wait<" + before + ">();");
    line("unsigned char* const staged = kept + stage * " + std::to_string(values_.stage_bytes()) + ";");
    line("stage = (stage + 1) % " + stages + ";");
  }
  emit_place_from("walk");
}

// Before the first row: what is the same for all, and the rows that are ahead of it.
void AcrossWriter::open_ahead() {
  values_.declare_steady();
  line("{");
  line("const idx lane = (idx)threadIdx.x % " + std::to_string(schedule_.across) + ";");
  open_steps("");
  values_.load_steady();
  line("}");
  line("}");
  line("}");
  values_.declare_next_row();
  read_row("first");
  line("int stage = 0;");
  for (int i = 0; i + 1 < schedule_.stages; ++i) {
    const std::string number = std::to_string(i);
    copy_row(i == 0 ? "first" : "first + " + number + " * stride", number);
  }
}

// A loop over the steps of a row, for those that are in it; two braces are left open without a condition.
void AcrossWriter::open_steps(const std::string& condition) {
  line("#pragma unroll");
  line("for (int s = 0; s < " + std::to_string(schedule_.steps) + "; ++s) {");
  line("const idx r = lane + s * " + std::to_string(schedule_.across) + ";");
  line("if (" + condition + "r < " + values_.number(steps()) + ") {");
  values_.indices("r", schedule_.inner);
}

void AcrossWriter::copy_row(const std::string& first, const std::string& stage) {
  line("{");
  emit_place_from(first, true);
  line("unsigned char* const staged = kept + " + stage + " * " + std::to_string(values_.stage_bytes()) + ";");
  open_steps("active && ");
  line("const idx own = (s * " + std::to_string(schedule_.threads) + " + (idx)threadIdx.x) * " +
       std::to_string(schedule_.lanes) + ";");
  values_.copy_ahead();
  line("}");
  line("}");
  line("}");
  line("gl_copies_close();");
}

void AcrossWriter::read_row(const std::string& first) {
  line("{");
  emit_place_from(first, true);
  values_.read_next_row();
  line("}");
}

void AcrossWriter::close_walk() {
  line("turn ^= 1;");
  line("}");
  line("const idx lane = (idx)threadIdx.x % " + std::to_string(schedule_.across) + ";");
  for (const int i : across_) leave(i);
}

// All blocks of one reduction lie together.
std::string AcrossWriter::slot(int i) {
  const int64_t before = kSlotBytes * (std::find(across_.begin(), across_.end(), i) - across_.begin());
  const std::string all = values_.number(blocks()) + " * " + std::to_string(elements().constant() * before);
  return "((" + std::string(compute_name(node(i).type)) + "*)(work + (long long)" + all + "))";
}

Sym AcrossWriter::across_bytes() const {
  return blocks() * (kSlotBytes * static_cast<int64_t>(across_.size()) * elements().constant());
}

void AcrossWriter::leave(int i) {
  const int across = schedule_.across, threads = schedule_.threads, lanes = schedule_.lanes;
  const int own = schedule_.steps * lanes;
  const std::string name = "c" + std::to_string(i);
  if (across < threads) {
    values_.need_room(threads * own * ir::bytes(node(i).type));
    line("gl_down_columns<" + combine_name(node(i).reduce) + ", " + std::to_string(across) + ", " +
         std::to_string(threads) + ", " + std::to_string(own) + ">(" + name + ", (" + compute_name(node(i).type) +
         "*)room);");
  }
  line("#pragma unroll");
  line("for (int s = 0; s < " + std::to_string(schedule_.steps) + "; ++s) {");
  line("const idx r = lane + s * " + std::to_string(across) + ";");
  const std::string first = across < threads ? "threadIdx.x < " + std::to_string(across) + " && " : "";
  line("if (" + first + "r < " + values_.number(steps()) + ") gl_store<" + std::to_string(lanes) + ">(" + slot(i) +
       " + (idx)blockIdx.x * " + values_.number(elements()) + " + r * " + std::to_string(lanes) + ", " + name +
       " + s * " + std::to_string(lanes) + ");");
  line("}");
}

Sym AcrossWriter::emit_walkers_join() {
  const int across = kJoinThreads / kJoinLines;
  const std::string all = values_.number(elements());
  schedule_.lanes = 1;
  values_.begin_late();
  line("const idx place = (idx)blockIdx.x * " + std::to_string(across) + " + (idx)threadIdx.x % " +
       std::to_string(across) + ";");
  line("const idx line = (idx)threadIdx.x / " + std::to_string(across) + ";");
  line("const bool active = place < " + all + ";");
  line("const idx parts = active ? " + values_.number(blocks()) + " : 0;");
  for (const int i : across_) {
    const std::string name = "r" + std::to_string(i);
    line(compute_name(node(i).type) + std::string(" ") + name + " = " + identity_text(node(i).reduce, node(i).type) +
         ";");
  }
  line("#pragma unroll 8");
  line("for (idx part = line; part < parts; part += " + std::to_string(kJoinLines) + ") {");
  for (const int i : across_) {
    const std::string name = "r" + std::to_string(i);
    line(name + " = " + combine_name(node(i).reduce) + "::of(" + name + ", " + slot(i) + "[part * " + all +
         " + place]);");
  }
  line("}");
  for (const int i : across_) {
    values_.need_room(kJoinThreads * ir::bytes(node(i).type));
    line("gl_down_columns<" + combine_name(node(i).reduce) + ", " + std::to_string(across) + ", " +
         std::to_string(kJoinThreads) + ", 1>(&r" + std::to_string(i) + ", (" + compute_name(node(i).type) +
         "*)room);");
  }
  line("if (active && line == 0) {");
  values_.indices("place", schedule_.inner);
  values_.late_values();
  line("}");
  return ceildiv(elements(), across);
}

}  // namespace graphlift::cuda
