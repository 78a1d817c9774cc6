// Owns: see across_writer.h.
#include "backends/cpu/across_writer.h"

namespace graphlift::cpu {

using ir::DType;

namespace {

constexpr int64_t kLine = 64;  // blocks share none

int64_t padded_to(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

AcrossWriter::AcrossWriter(const codegen::Kernel& kernel, const Schedule& schedule, const Target& target)
    : NodeWriter(kernel, schedule, target) {
  for (size_t i = 0; i < kernel.nodes.size(); ++i)
    if (kernel.nodes[i].kind == codegen::ScalarNode::Kind::Across) across_.push_back(static_cast<int>(i));
}

int64_t AcrossWriter::row_elements() const {
  int64_t elements = padded_to(extent(schedule_.vector_axis).constant(), schedule_.lanes);
  for (const int axis : schedule_.inner) elements *= extent(axis).constant();
  return elements;
}

int64_t AcrossWriter::slot_bytes(int i) const { return padded_to(row_elements() * ir::bytes(node(i).type), kLine); }

ir::Sym AcrossWriter::partial_words() const {
  int64_t bytes = 0;
  for (const int i : across_) bytes += slot_bytes(i);
  return schedule_.blocks * (bytes / 8);
}

ir::Sym AcrossWriter::joined_units() const { return row_elements() / schedule_.lanes; }

Reg AcrossWriter::place_in_row() {
  Reg index = whole(0);
  for (const int axis : schedule_.inner)
    index = add(times(index, whole(extent(axis).constant())), index_[static_cast<size_t>(axis)]);
  const int64_t padded = padded_to(extent(schedule_.vector_axis).constant(), schedule_.lanes);
  return add(times(index, whole(padded)), index_[static_cast<size_t>(schedule_.vector_axis)]);
}

// All blocks of one reduction lie together.
std::string AcrossWriter::slot(int i, const Reg& block) {
  int64_t before = 0;
  for (const int other : across_)
    if (other < i) before += slot_bytes(other);
  const Reg at = add(times(symbolic(schedule_.blocks), whole(before)), times(block, whole(slot_bytes(i))));
  return code_.element(base(static_cast<int>(kernel_.buffers.size())), DType::int8, at);
}

void AcrossWriter::begin_block(const Reg& block) {
  for (const int i : across_) slots_[i] = slot(i, block);
  loop("0", whole(row_elements()).text, schedule_.lanes, [&](const Reg& at) {
    for (const int i : across_) {
      const Reg nothing = emit_identity(code_, node(i).reduce, node(i).type, schedule_.lanes);
      code_.store(code_.element(slots_.at(i), node(i).type, at), node(i).type, nothing, nullptr);
    }
  });
}

void AcrossWriter::add_across(int i, const Reg& x) {
  const std::string place = code_.element(slots_.at(i), x.type, place_in_row());
  const Reg so_far = code_.load(place, x.type, x.lanes, nullptr);
  code_.store(place, x.type, emit_primitive(code_, codegen::combiner(node(i).reduce), {so_far, x}, x.type), nullptr);
}

// Sums go on in parts, as they do in blocks.
Reg AcrossWriter::join(int i, const Reg& at) {
  constexpr int64_t kPart = 64;
  const DType type = node(i).type;
  const int lanes = schedule_.lanes;
  const codegen::ReduceKind kind = node(i).reduce;
  const std::string total = variable(Code::type(type, lanes)), part = variable(Code::type(type, lanes));
  auto more = [&](const std::string& sum, const Reg& x) {
    set(sum, emit_primitive(code_, codegen::combiner(kind), {get(sum, type, lanes), x}, type));
  };
  set(total, emit_identity(code_, kind, type, lanes));
  const Reg blocks = symbolic(schedule_.blocks);
  loop("0", symbolic(ceildiv(schedule_.blocks, kPart)).text, 1, [&](const Reg& at_part) {
    const Reg begin = times(at_part, whole(kPart));
    const Reg end = code_.intrinsic("smin", {blocks, add(begin, whole(kPart))});
    set(part, emit_identity(code_, kind, type, lanes));
    loop(begin.text, end.text, 1, [&](const Reg& block) {
      more(part, code_.load(code_.element(slot(i, block), type, at), type, lanes, nullptr));
    });
    more(total, get(part, type, lanes));
  });
  return get(total, type, lanes);
}

void AcrossWriter::join_blocks(const Reg& unit) {
  const int lanes = schedule_.lanes;
  const ir::Sym& size = extent(schedule_.vector_axis);
  const int64_t vectors = padded_to(size.constant(), lanes) / lanes;
  Reg rest = unit;
  const Reg column = times(take(&rest, whole(vectors)), whole(lanes));
  index_[static_cast<size_t>(schedule_.vector_axis)] = column;
  for (size_t i = schedule_.inner.size(); i-- > 0;) {
    const int axis = schedule_.inner[i];
    index_[static_cast<size_t>(axis)] = i == 0 ? rest : take(&rest, symbolic(extent(axis)));
  }
  const Reg at = times(unit, whole(lanes));
  Reg mask;
  const bool even = size.constant() % lanes == 0;
  if (!even) {
    const Reg left = code_.splat(code_.binary("sub nsw", whole(size.constant()), column), lanes);
    mask = code_.compare("icmp ult", code_.lane_numbers(lanes), left);
  }
  const Reg* some = even ? nullptr : &mask;
  std::map<int, Reg> values;
  for (const int i : across_) values.emplace(i, join(i, at));
  std::function<Reg(int)> value = [&](int i) {
    if (const auto found = values.find(i); found != values.end()) return found->second;
    const Reg made = code_.splat(compute(node(i), lanes, some, value), lanes);
    return values.emplace(i, made).first->second;
  };
  const std::vector<bool> late = kernel_.find_late();
  std::vector<std::pair<const codegen::KernelStore*, Reg>> written;
  for (const auto& store : kernel_.stores)
    if (late[static_cast<size_t>(store.value)]) written.emplace_back(&store, value(store.value));
  for (const auto& [store, x] : written) write(store->buffer, store->index, x, some, lanes);
}

}  // namespace graphlift::cpu
