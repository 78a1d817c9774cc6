// Owns: see cuda_values.h. Names: x<i> loads, v<i> primitives, r<i> reductions, k<i> values kept in registers, y<i>
// what store i writes; a<i> indices of axes, j the lane, s the step.
#include "backends/cuda/cuda_values.h"

#include <algorithm>

#include "backends/cuda/cuda_expression.h"
#include "base/error.h"

namespace graphlift::cuda {
namespace {

using codegen::Affine;
using codegen::Kernel;
using codegen::ScalarNode;
using ir::Sym;
using Kind = ScalarNode::Kind;

}  // namespace

ValueWriter::ValueWriter(const Kernel& kernel, const Schedule& schedule, const std::vector<bool>& by_value)
    : kernel_(kernel), schedule_(schedule), by_value_(by_value) {
  find_live();
  find_escaping();
  if (schedule.stages > 0) find_ahead();
  if (schedule.stages > 0) keep_met_again();
  if (schedule.keeps) find_kept();
  if (schedule.room > 0) find_shared();
  find_guards();
}

void ValueWriter::begin() {
  text_.clear();
  depth_ = "  ";
  room_ = 0;
  uniform_.clear();
}

std::string ValueWriter::take() {
  std::string room = room_ ? "  alignas(16) __shared__ unsigned char room[" + std::to_string(room_) + "];\n" : "";
  if (shared_bytes_) room += "  GL_SHARED(kept, " + std::to_string(shared_bytes_) + ");\n";
  return room + text_;
}

void ValueWriter::line(const std::string& text) {
  if (text[0] == '}') depth_.resize(depth_.size() - 2);
  text_ += (text[0] == '#' ? "" : depth_) + text + "\n";
  if (text.back() == '{') depth_ += "  ";
}

// --- what is needed when ---------------------------------------------------------------------------------------------
void ValueWriter::find_live() {
  live_.assign(kernel_.nodes.size(), false);
  for (const auto& store : kernel_.stores) live_[static_cast<size_t>(store.value)] = true;
  for (size_t i = kernel_.nodes.size(); i-- > 0;)
    if (live_[i])
      for (const int arg : kernel_.nodes[i].args) live_[static_cast<size_t>(arg)] = true;
}

void ValueWriter::find_escaping() {
  escapes_.assign(kernel_.nodes.size(), false);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const int user = static_cast<int>(i);
    for (const int arg : node(user).args)
      if (!is_inner(arg) && (is_inner(user) || node(user).kind == Kind::Reduce || phase(user) != phase(arg)))
        escapes_[static_cast<size_t>(arg)] = true;
  }
  for (const auto& store : kernel_.stores)
    if (varies(kernel_, store.index)) escapes_[static_cast<size_t>(store.value)] = true;
}

bool ValueWriter::is_at_hand(int i, int phase) const {
  const auto found = kept_.find(i);
  return found != kept_.end() && found->second < phase;
}

void ValueWriter::need(int i, int phase, bool without_kept, std::set<int>* found) const {
  if (!is_inner(i) || (without_kept && is_at_hand(i, phase)) || !found->insert(i).second) return;
  for (const int arg : node(i).args) need(arg, phase, without_kept, found);
}

// The element values of a phase.
std::set<int> ValueWriter::needed(int at, bool without_kept) const {
  std::set<int> found;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i)
    if ((kernel_.nodes[i].kind == Kind::Reduce && live_[i] && schedule_.phase[i] == at + 1 &&
         maximum(static_cast<int>(i)) < 0) ||
        adds_across(static_cast<int>(i), at))
      need(kernel_.nodes[i].args[0], at, without_kept, &found);
  for (const auto& store : kernel_.stores)
    if (stores_element(store, at)) need(store.value, at, without_kept, &found);
  return found;
}

// The first phase of each element value, and in how many it is used.
std::map<int, int> ValueWriter::first_uses(std::map<int, int>* uses) const {
  std::map<int, int> first;
  for (int at = 0; at < schedule_.phases; ++at)
    for (const int i : needed(at, false)) first.emplace(i, at), ++(*uses)[i];
  return first;
}

// Loads first, then what is dear to compute again.
void ValueWriter::find_kept() {
  std::map<int, int> uses;
  const std::map<int, int> first = first_uses(&uses);
  int left = kKeptRegisters / std::max(1, schedule_.steps * schedule_.lanes);
  for (const bool loads : {true, false}) {
    for (const auto& [i, count] : uses) {
      const bool load = node(i).kind == Kind::Load && !is_same_for_lanes(i);
      const bool dear = node(i).kind == Kind::Prim && codegen::row(node(i).prim).cost == codegen::PrimCost::Costly;
      if (count < 2 || (loads ? !load : !dear) || kept_.count(i) || is_ahead(i)) continue;
      const int registers = std::max(1, ir::bytes(node(i).type) / 4);
      if (registers > left) continue;
      left -= registers;
      kept_.emplace(i, first.at(i));
    }
  }
}

void ValueWriter::find_shared() {
  std::map<int, int> uses;
  const std::map<int, int> first = first_uses(&uses);
  const Sym elements = product(kernel_, schedule_.inner);
  for (const auto& [i, count] : uses) {
    const ScalarNode& of = node(i);
    if (count < 2 || of.kind != Kind::Load || is_same_for_lanes(i)) continue;
    const int64_t bytes =
        ceildiv(elements * ir::bytes(kernel_.buffers[static_cast<size_t>(of.buffer)].dtype), 16).constant() * 16;
    if (shared_bytes_ + bytes > schedule_.room) continue;
    shared_.emplace(i, Shared{first.at(i), shared_bytes_});
    shared_bytes_ += bytes;
  }
}

// --- indices ---------------------------------------------------------------------------------------------------------
std::string ValueWriter::number(const Sym& value) {
  if (value.is_constant()) return std::to_string(value.constant());
  const auto [found, fresh] = number_of_.emplace(value.str(), static_cast<int>(numbers_.size()));
  if (fresh) numbers_.push_back(value);
  return "n" + std::to_string(found->second);
}

void ValueWriter::indices(const std::string& linear, const std::vector<int>& axes) {
  std::string rest = linear;
  for (size_t i = axes.size(); i-- > 0;) {
    const int axis = axes[i];
    const bool vector = axis == schedule_.vector_axis && schedule_.lanes > 1;
    Sym extent = kernel_.axes[static_cast<size_t>(axis)].extent;
    if (vector) extent = schedule_.ragged ? ceildiv(extent, schedule_.lanes) : floordiv(extent, schedule_.lanes);
    if (extent.is_constant() && extent.constant() < 1) extent = 1;
    std::string index = rest;
    if (i > 0) {
      const std::string count = "(uidx)" + number(extent);
      index = "(idx)((uidx)" + rest + " % " + count + ")";
      const std::string next = "q" + std::to_string(axis);
      line("const idx " + next + " = (idx)((uidx)" + rest + " / " + count + ");");
      rest = next;
    }
    line("const idx a" + std::to_string(axis) + " = " + index +
         (vector ? " * " + std::to_string(schedule_.lanes) : "") + ";");
  }
}

// All vectors of a row begin a multiple of lanes apart.
void ValueWriter::peel() {
  const Affine* along = nullptr;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i)
    if (schedule_.vector_load[i] && kernel_.nodes[i].kind == Kind::Load) along = &kernel_.nodes[i].index;
  for (size_t i = 0; i < kernel_.stores.size(); ++i)
    if (schedule_.vector_store[i]) along = &kernel_.stores[i].index;
  Affine first = *along;
  first.strides[static_cast<size_t>(schedule_.vector_axis)] = 0;
  const std::string all = number(kernel_.axes[static_cast<size_t>(schedule_.vector_axis)].extent);
  line("const idx before = -(" + affine(first) + ") & " + std::to_string(schedule_.lanes - 1) + ";");
  line("const idx head = before < " + all + " ? before : " + all + ";");
  line("const idx vectors = (" + all + " - head) / " + std::to_string(schedule_.lanes) + ";");
}

std::string ValueWriter::affine(const Affine& index) {
  std::string sum;
  auto add = [&](const std::string& term) { sum += (sum.empty() ? "" : " + ") + term; };
  if (!index.offset.same(0)) add("(idx)" + number(index.offset));
  for (size_t axis = 0; axis < index.strides.size(); ++axis) {
    if (index.strides[axis].same(0)) continue;
    const std::string a = "a" + std::to_string(static_cast<int64_t>(axis));
    add(index.strides[axis].same(1) ? a : a + " * " + number(index.strides[axis]));
  }
  return sum.empty() ? "0" : sum;
}

Sym ValueWriter::lane_stride(const Affine& index) const {
  return schedule_.vector_axis < 0 ? Sym(0) : index.strides[static_cast<size_t>(schedule_.vector_axis)];
}

// --- values ----------------------------------------------------------------------------------------------------------
std::string ValueWriter::name(int i) const {
  const Kind kind = node(i).kind;
  return (kind == Kind::Load ? "x" : kind == Kind::Reduce || kind == Kind::Across ? "r" : "v") + std::to_string(i);
}

// A value in its lane.
std::string ValueWriter::read(int i) const {
  const ScalarNode& of = node(i);
  if (of.kind == Kind::Number && ir::is_floating(of.type)) return number_text(of.real, of.type);
  if (of.kind == Kind::Number && of.integer.is_constant()) return number_text(of.integer.constant(), of.type);
  if (uniform_.count(i)) return name(i);
  const int lanes = is_inner(i) ? schedule_.lanes : row_lanes();
  if (kept_.count(i))
    return "k" + std::to_string(i) + "[s" + (lanes > 1 ? " * " + std::to_string(lanes) + " + j]" : "]");
  const bool array =
      of.kind == Kind::Load || of.kind == Kind::Reduce || (!is_inner(i) && escapes_[static_cast<size_t>(i)]);
  return lanes > 1 && array ? name(i) + "[j]" : name(i);
}

// The thread's values of this step.
std::string ValueWriter::shared_place(int i) const {
  const std::string type = memory_name(kernel_.buffers[static_cast<size_t>(node(i).buffer)].dtype);
  const std::string from = schedule_.stages > 0 ? "staged + " : "kept + ";
  return "((" + type + "*)(" + from + std::to_string(shared_.at(i).place) + ") + own)";
}

void ValueWriter::keep_shared(int i, int lanes) {
  const std::string type = memory_name(kernel_.buffers[static_cast<size_t>(node(i).buffer)].dtype);
  if (lanes == 1) return line("*" + shared_place(i) + " = gl_down<" + type + ">::of(" + name(i) + ");");
  line("gl_store<" + std::to_string(lanes) + ">(" + shared_place(i) + ", " + name(i) + ");");
}

void ValueWriter::load_shared(int i, int lanes) {
  const std::string type = compute_name(node(i).type);
  if (kept_.count(i))
    return line("gl_load<" + std::to_string(lanes) + ">(" + shared_place(i) + ", k" + std::to_string(i) + " + s * " +
                std::to_string(lanes) + ");");
  if (lanes == 1) {
    uniform_.insert(i);
    return line("const " + type + " " + name(i) + " = gl_up(*" + shared_place(i) + ");");
  }
  line(type + " " + name(i) + "[" + std::to_string(lanes) + "];");
  line("gl_load<" + std::to_string(lanes) + ">(" + shared_place(i) + ", " + name(i) + ");");
}

void ValueWriter::load(int i, int lanes) {
  const ScalarNode& of = node(i);
  const std::string type = compute_name(of.type), buffer = "b" + std::to_string(of.buffer);
  const bool value = by_value_[static_cast<size_t>(of.buffer)];
  const std::string at = load_place(i);
  if (kept_.count(i)) {
    const std::string to = "k" + std::to_string(i);
    if (lanes == 1) return line(to + "[s] = gl_up(" + buffer + "[" + at + "]);");
    return load_lanes(i, "(" + to + " + s * " + std::to_string(lanes) + ")", at, lanes);
  }
  const std::string needed = value ? "" : guard(i);
  if (lanes == 1 || value || is_same_for_lanes(i)) {
    uniform_.insert(i);
    const std::string read = "gl_up(" + buffer + (value ? "" : "[" + at + "]") + ")";
    return line("const " + type + " " + name(i) + " = " +
                (needed.empty() ? read : needed + " ? " + read + " : (" + type + ")0") + ";");
  }
  line(type + " " + name(i) + "[" + std::to_string(lanes) + "]" + (needed.empty() ? ";" : " = {};"));
  if (!needed.empty()) line("if (" + needed + ") {");
  load_lanes(i, name(i), at, lanes);
  if (!needed.empty()) line("}");
}

void ValueWriter::load_lanes(int i, const std::string& to, const std::string& from, int lanes) {
  const ScalarNode& of = node(i);
  const std::string buffer = "b" + std::to_string(of.buffer), all = std::to_string(lanes);
  const bool vector = schedule_.vector_load[static_cast<size_t>(i)];
  const std::string whole = "gl_load<" + all + ">(" + buffer + " + (" + from + "), " + to + ");";
  if (vector && !schedule_.ragged) return line(whole);
  if (vector) either(whole);
  const Sym stride = lane_stride(of.index);
  const std::string step = stride.same(1) ? " + j" : " + j * " + number(stride);
  const std::string place = of.args.empty() ? from : load_place(i, true);
  const std::string element = "gl_up(" + buffer + "[" + place + step + "])";
  line("#pragma unroll");
  line("for (int j = 0; j < " + all + "; ++j) " + to + "[j] = " +
       (schedule_.ragged ? "j < count ? " + element + " : (" + compute_name(of.type) + ")0" : element) + ";");
  if (vector) line("}");
}

// Whole vectors where they are inside; leaves the other case open.
void ValueWriter::either(const std::string& whole) {
  line("if (count >= " + std::to_string(schedule_.lanes) + ") {");
  line(whole);
  line("} else {");
}

std::string ValueWriter::expression(int i, int lanes) {
  const ScalarNode& of = node(i);
  if (of.kind == Kind::Number)
    return primitive_text(codegen::Prim::Cast, {number(of.integer)}, ir::DType::int64, of.type);
  if (of.kind == Kind::Index) {
    const Sym stride = lanes > 1 ? lane_stride(of.index) : Sym(0);
    const std::string step = stride.same(0) ? "" : " + j * " + number(stride);
    return "(long long)(" + affine(of.index) + step + ")";
  }
  std::vector<std::string> args;
  for (const int arg : of.args) args.push_back(read(arg));
  if (of.prim == codegen::Prim::Uniform) args.push_back(shared_draw(i, lanes, &args));
  return primitive_text(of.prim, args, node(of.args.back()).type, of.type);
}

// g<i>, h<i>: seed and number of the first draw, once for all lanes.
void ValueWriter::declare_draws(const std::vector<int>& values) {
  for (const int i : values) {
    if (node(i).kind != Kind::Prim || node(i).prim != codegen::Prim::Uniform) continue;
    const std::string own = std::to_string(i), within = ", " + read(node(i).args[2]) + ");";
    line("const unsigned long long g" + own + " = gl_seed(" + read(node(i).args[0]) + within);
    line("const unsigned long long h" + own + " = gl_call(" + read(node(i).args[1]) + within);
  }
}

// Lanes that are elements of one draw: the first one's place, and how far this one is behind it.
std::string ValueWriter::shared_draw(int i, int lanes, std::vector<std::string>* args) {
  (*args)[0] = "g" + std::to_string(i);
  (*args)[1] = "h" + std::to_string(i);
  const int place = node(i).args[3];
  const ir::Sym& vector = node(node(i).args[5]).integer;
  if (lanes == 1 || node(place).kind != Kind::Index || !schedule_.vector_load[static_cast<size_t>(place)]) return "0";
  const int64_t together = std::min<int64_t>({4, lanes, vector.constant()});
  const std::string last = std::to_string(together - 1);
  (*args)[3] = "(long long)(" + affine(node(place).index) + " + (j & ~" + last + "))";
  return "j & " + last;
}

void ValueWriter::compute(int i, int lanes) {
  const std::string to = read(i);
  const bool declared = kept_.count(i) || (lanes > 1 && !is_inner(i) && escapes_[static_cast<size_t>(i)]);
  line((declared ? "" : "const " + std::string(compute_name(node(i).type)) + " ") + to + " = " + expression(i, lanes) +
       ";");
}

void ValueWriter::open_lanes(int lanes) {
  if (lanes == 1) return;
  line("#pragma unroll");
  line("for (int j = 0; j < " + std::to_string(lanes) + "; ++j) {");
}

void ValueWriter::close_lanes(int lanes) {
  if (lanes > 1) line("}");
}

// What was put into y<i>, into memory.
void ValueWriter::store(size_t i, int lanes) {
  const auto& to = kernel_.stores[i];
  const std::string buffer = "b" + std::to_string(to.buffer), value = "y" + std::to_string(static_cast<int64_t>(i)),
                    at = affine(to.index);
  const std::string down =
      "gl_down<" + std::string(memory_name(kernel_.buffers[static_cast<size_t>(to.buffer)].dtype)) + ">::of(";
  if (lanes == 1) return line(buffer + "[" + at + "] = " + down + value + ");");
  const std::string all = std::to_string(lanes);
  const std::string whole = "gl_store<" + all + ">(" + buffer + " + (" + at + "), " + value + ");";
  if (schedule_.vector_store[i] && !schedule_.ragged) return line(whole);
  if (schedule_.vector_store[i]) either(whole);
  const Sym stride = lane_stride(to.index);
  const std::string step = stride.same(1) ? " + j" : " + j * " + number(stride);
  line("#pragma unroll");
  line("for (int j = 0; j < " + all + "; ++j) " + (schedule_.ragged ? "if (j < count) " : "") + buffer + "[" + at +
       step + "] = " + down + value + "[j]);");
  if (schedule_.vector_store[i]) line("}");
}

std::vector<int> ValueWriter::alignment() const {
  std::vector<int> bytes(kernel_.buffers.size(), 1);
  auto need = [&](int buffer) {
    const auto i = static_cast<size_t>(buffer);
    bytes[i] = std::max(bytes[i], std::min(16, schedule_.lanes * ir::bytes(kernel_.buffers[i].dtype)));
  };
  for (size_t i = 0; i < kernel_.nodes.size(); ++i)
    if (schedule_.vector_load[i] && kernel_.nodes[i].kind == Kind::Load) need(kernel_.nodes[i].buffer);
  for (size_t i = 0; i < kernel_.stores.size(); ++i)
    if (schedule_.vector_store[i]) need(kernel_.stores[i].buffer);
  return bytes;
}

}  // namespace graphlift::cuda
