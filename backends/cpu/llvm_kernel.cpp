// Owns: see llvm_kernel.h. The function loops over units; a unit computes its row values, then per phase one nest of
// loops over the inner axes, whose innermost runs along the vector axis. Of a kernel that is cut, each phase is a
// function (a stage), whose units join what the stages before left in the buffer of partial results; the last one
// stores rows. A unit of several vectors of columns (wide) has its rows as the outer loops, so that memory is read in
// its order; what belongs to columns is kept on the stack. Where rows are reduced across, a unit is a block of rows.
#include "backends/cpu/llvm_kernel.h"

#include <algorithm>
#include <functional>
#include <map>

#include "backends/cpu/across_writer.h"
#include "backends/cpu/llvm_primitives.h"
#include "base/error.h"

namespace graphlift::cpu {
namespace {

using codegen::Affine;
using codegen::Kernel;
using codegen::ScalarNode;
using ir::DType;
using Kind = ScalarNode::Kind;

class KernelEmitter : AcrossWriter {
 public:
  KernelEmitter(const Kernel& kernel, const Schedule& schedule, const Target& target, std::string name)
      : AcrossWriter(kernel, schedule, target) {
    result_.name = std::move(name);
  }

  KernelCode run() {
    plan_stages();
    for (stage_ = 0; stage_ < result_.stages.size(); ++stage_) {
      // Strides of memory without elements say nothing: 0 where the axis is kept.
      if (!stores_nothing() && !emit_whole()) loop("%begin", "%end", 1, [&](const Reg& unit) { emit_unit(unit); });
      end_function();
    }
    result_.element_work = 1;
    for (const ScalarNode& node : kernel_.nodes)
      if (node.kind == Kind::Prim) result_.element_work += row(node.prim).cost == codegen::PrimCost::Costly ? 4 : 0.25;
    result_.text = module(result_.name, kernel_.buffers.size() + (is_cut() || schedule_.in_blocks));
    result_.numbers = numbers_;
    return std::move(result_);
  }

 private:
  // --- sizes and numbers ---------------------------------------------------------------------------------------------
  bool is_cut() const { return schedule_.cut_axis >= 0; }
  // Whether units are pieces of the vector axis.
  bool pieces() const { return schedule_.vector_axis >= 0 && schedule_.shape != Shape::Rows; }

  bool stores_nothing() const {
    return std::any_of(kernel_.axes.begin(), kernel_.axes.end(),
                       [](const codegen::KernelAxis& axis) { return !axis.reduced && axis.extent.same(0); });
  }

  // --- a unit --------------------------------------------------------------------------------------------------------
  void plan_stages() {
    ir::Sym rows = 1, elements = pieces() ? ir::Sym(schedule_.chunk) : ir::Sym(1);
    for (const int axis : schedule_.outer) rows = rows * extent(axis);
    if (pieces()) rows = rows * ceildiv(extent(schedule_.vector_axis), schedule_.chunk);
    if (stores_nothing()) rows = 0;
    auto length = [&](int axis) { return axis == schedule_.cut_axis ? schedule_.cut_length : extent(axis); };
    if (schedule_.shape == Shape::Rows) elements = length(schedule_.vector_axis);
    for (const int axis : schedule_.inner) elements = elements * length(axis);
    if (schedule_.in_blocks) {
      result_.stages = {{schedule_.blocks, schedule_.block_rows * elements},
                        {joined_units(), schedule_.blocks * schedule_.lanes}};
      result_.partial_words = partial_words();
    }
    if (!result_.stages.empty()) return;
    if (!is_cut()) return result_.stages.push_back({rows, elements});
    slots_ = rows * schedule_.cuts;
    result_.stages.assign(static_cast<size_t>(schedule_.phases), {slots_, elements});
    const bool stores_rows = std::any_of(kernel_.stores.begin(), kernel_.stores.end(),
                                         [&](const auto& store) { return !schedule_.varies(store.index); });
    if (stores_rows) result_.stages.push_back({rows, schedule_.cuts});
    const int64_t lanes = schedule_.shape == Shape::Columns ? schedule_.chunk : 1;
    for (size_t i = 0; i < kernel_.nodes.size(); ++i)
      if (kernel_.nodes[i].kind == Kind::Reduce) {
        const int order = static_cast<int>(partials_.size());
        partials_.emplace(static_cast<int>(i), order);
      }
    result_.partial_words = slots_ * (static_cast<int64_t>(partials_.size()) * lanes);
  }
  // Whether units are pieces of rows or columns, and not whole ones.
  bool in_pieces() const { return is_cut() && stage_ < static_cast<size_t>(schedule_.phases); }

  // Elements along one axis are one loop over all units; false: they are not.
  bool emit_whole() {
    if (schedule_.shape != Shape::Elements || schedule_.vector_axis < 0 || !schedule_.outer.empty()) return false;
    const Reg chunk = whole(schedule_.chunk), begin{"%begin", DType::int64, 1}, end{"%end", DType::int64, 1};
    const Reg from = times(begin, chunk), size = symbolic(extent(schedule_.vector_axis));
    emit_elements(from, code_.intrinsic("smin", {size, times(end, chunk)}));
    return true;
  }

  void emit_unit(const Reg& unit) {
    if (!schedule_.in_blocks) return emit_piece(unit);
    if (stage_ > 0) return join_blocks(unit);
    begin_block(unit);
    const Reg length = symbolic(schedule_.block_rows), from = times(unit, length);
    const Reg to = code_.intrinsic("smin", {symbolic(schedule_.rows), add(from, length)});
    loop(from.text, to.text, 1, [&](const Reg& row) { emit_piece(row); });
  }

  void emit_piece(const Reg& unit) {
    Reg rest = unit;
    Reg from = whole(0);
    if (in_pieces()) {
      const Reg length = symbolic(schedule_.cut_length);
      cut_from_ = times(take(&rest, symbolic(schedule_.cuts)), length);
      cut_to_ = code_.intrinsic("smin", {symbolic(extent(schedule_.cut_axis)), add(cut_from_, length)});
    }
    unit_ = unit;
    row_ = rest;
    if (pieces()) {
      const Reg count = symbolic(ceildiv(extent(schedule_.vector_axis), schedule_.chunk));
      from = times(take(&rest, count), whole(schedule_.chunk));
    }
    for (size_t i = schedule_.outer.size(); i-- > 0;) {
      const int axis = schedule_.outer[i];
      index_[static_cast<size_t>(axis)] = i == 0 ? rest : take(&rest, symbolic(extent(axis)));
    }
    if (schedule_.shape == Shape::Columns)
      emit_columns(from);
    else
      emit_rows(from);
  }

  void emit_rows(Reg from) {
    Reg to = whole(1);
    if (in_pieces() && schedule_.cut_axis == schedule_.vector_axis) {
      from = cut_from_;
      to = cut_to_;
    } else if (schedule_.vector_axis >= 0) {
      const ir::Sym& size = extent(schedule_.vector_axis);
      to = symbolic(size);
      if (pieces() && !(size.is_constant() && size.constant() <= schedule_.chunk))
        to = code_.intrinsic("smin", {to, add(from, whole(schedule_.chunk))});
    }
    emit_elements(from, to);
  }

  void emit_elements(const Reg& from, const Reg& to) {
    row_lanes_ = 1;
    row_mask_ = nullptr;
    emit_phases([&](const std::function<void(const Reg*)>& body) { vector_loop(from, to, body); });
  }

  // Lanes along a kept axis: whole columns, or as many as are left.
  void emit_columns(const Reg& from) {
    const int axis = schedule_.vector_axis;
    row_lanes_ = schedule_.lanes;
    if (is_wide()) {
      from_ = from;
      to_ = code_.intrinsic("smin", {symbolic(extent(axis)), add(from, whole(schedule_.chunk))});
      row_memory_.clear();
      return emit_phases([&](const std::function<void(const Reg*)>& body) { vector_loop(from_, to_, body); });
    }
    index_[static_cast<size_t>(axis < 0 ? 0 : axis)] = from;
    auto body = [&](const Reg* mask) {
      row_mask_ = mask;
      emit_phases([&](const std::function<void(const Reg*)>& inside) { inside(mask); });
    };
    const ir::Sym& size = extent(axis);
    if (size.is_constant() && size.constant() % schedule_.lanes == 0) return body(nullptr);
    const Reg left = code_.binary("sub nsw", symbolic(size), from);
    when(
        code_.compare("icmp sge", left, whole(schedule_.lanes)), [&] { body(nullptr); },
        [&] {
          const Reg mask = lane_mask(left, schedule_.lanes);
          body(&mask);
        });
  }

  // --- what belongs to columns, or to a row --------------------------------------------------------------------------
  bool is_wide() const { return schedule_.shape == Shape::Columns && schedule_.chunk > schedule_.lanes; }

  // Once, or for each vector of a wide unit's columns.
  void each_vector(const std::function<void()>& body) {
    if (!is_wide()) return body();
    vector_loop(from_, to_, [&](const Reg* mask) {
      row_mask_ = mask;
      body();
    });
  }

  // Memory for a value of `lanes` lanes, or of a wide unit's vectors.
  std::string kept(DType type, int lanes) {
    if (!is_wide()) return variable(Code::type(type, lanes));
    return variable("[" + std::to_string(schedule_.chunk * ir::bytes(type)) + " x i8], align 64");
  }
  Reg column() { return code_.binary("sub nsw", index_[static_cast<size_t>(schedule_.vector_axis)], from_); }
  Reg get_kept(const std::string& memory, DType type, int lanes) {
    return is_wide() ? code_.load(code_.element(memory, type, column()), type, lanes, nullptr)
                     : get(memory, type, lanes);
  }
  void set_kept(const std::string& memory, const Reg& value) {
    is_wide() ? code_.store(code_.element(memory, value.type, column()), value.type, value, nullptr)
              : set(memory, value);
  }

  Reg row_value(int i) {
    const ScalarNode& node = kernel_.nodes[static_cast<size_t>(i)];
    if (!is_wide()) return rows_.at(i);
    if (node.kind == Kind::Number) return compute(node, row_lanes_, nullptr, {});
    return get_kept(row_memory_.at(i), node.type, row_lanes_);
  }
  void keep_row_value(int i, const Reg& value) {
    if (!is_wide()) {
      rows_[i] = value;
      return;
    }
    const DType type = kernel_.nodes[static_cast<size_t>(i)].type;
    const auto [found, fresh] = row_memory_.emplace(i, "");
    if (fresh) found->second = kept(type, row_lanes_);
    set_kept(found->second, code_.splat(value, row_lanes_));
  }

  Reg lane_mask(const Reg& left, int lanes) {
    return code_.compare("icmp ult", code_.lane_numbers(lanes), code_.splat(left, lanes));
  }

  // Steps of all lanes, then the lanes that are left.
  void vector_loop(const Reg& from, const Reg& to, const std::function<void(const Reg*)>& body) {
    if (schedule_.vector_axis < 0) return body(nullptr);
    Reg& index = index_[static_cast<size_t>(schedule_.vector_axis)];
    const int lanes = schedule_.lanes;
    const ir::Sym& size = extent(schedule_.vector_axis);
    const bool short_row = size.is_constant() && size.constant() < lanes;
    std::string counter;
    if (!short_row)
      counter = summing_loop(from, to, lanes, folds_at(schedule_.inner.size()), [&](const Reg& i) {
        index = i;
        body(nullptr);
      });
    const bool even_pieces = schedule_.shape == Shape::Rows || schedule_.chunk % lanes == 0;
    if (size.is_constant() && size.constant() % lanes == 0 && even_pieces) return;
    index = short_row ? from : get(counter, DType::int64, 1);
    const Reg left = code_.binary("sub nsw", to, index);
    auto tail = [&] {
      const Reg mask = lane_mask(left, lanes);
      body(&mask);
    };
    short_row ? tail() : when(code_.compare("icmp sgt", left, whole(0)), tail);
  }

  using Innermost = std::function<void(const std::function<void(const Reg*)>&)>;

  void emit_phases(const Innermost& innermost) {
    rows_.clear();
    spills_made_.clear();
    if (is_cut()) return emit_stage(innermost);
    for (int phase = 0; phase <= schedule_.phases; ++phase) {
      emit_row_values(phase);
      if (phase < schedule_.phases) emit_phase(phase, innermost);
    }
    store_rows();
  }

  void store_rows() {
    each_vector([&] {
      for (const auto& store : kernel_.stores)
        if (!schedule_.varies(store.index))
          write(store.buffer, store.index, row_value(store.value), row_mask_, row_lanes_);
    });
  }

  void emit_stage(const Innermost& innermost) {
    const int stage = static_cast<int>(stage_);
    for (int phase = 0; phase <= stage; ++phase) {
      emit_row_values(phase);
      if (phase == stage) break;
      each_vector([&] {
        for (const auto& [node, order] : partials_)
          if (schedule_.phase[static_cast<size_t>(node)] == phase + 1) keep_row_value(node, joined(node, order));
      });
    }
    in_pieces() ? emit_phase(stage, innermost) : store_rows();
  }

  // Where partial results of a reduction are: those of one row one after another.
  std::string partial_place(int order, const Reg& slot) {
    Reg at = add(times(symbolic(slots_), whole(order)), slot);
    at = times(at, whole(is_wide() ? schedule_.chunk : row_lanes_));
    if (is_wide()) at = add(at, column());
    return code_.element(base(static_cast<int>(kernel_.buffers.size())), DType::float64, at);
  }

  Reg joined(int node, int order) {
    const ScalarNode& reduce = kernel_.nodes[static_cast<size_t>(node)];
    const std::string sum = variable(Code::type(reduce.type, row_lanes_));
    set(sum, emit_identity(code_, reduce.reduce, reduce.type, row_lanes_));
    const Reg cuts = symbolic(schedule_.cuts), first = times(row_, cuts);
    loop("0", cuts.text, 1, [&](const Reg& i) {
      const Reg part = code_.load(partial_place(order, add(first, i)), reduce.type, row_lanes_, nullptr);
      const Reg so_far = get(sum, reduce.type, row_lanes_);
      set(sum, emit_primitive(code_, codegen::combiner(reduce.reduce), {so_far, part}, reduce.type));
    });
    return get(sum, reduce.type, row_lanes_);
  }

  void emit_row_values(int phase) {
    std::vector<int> made;
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      const ScalarNode& node = kernel_.nodes[i];
      if (schedule_.is_inner[i] || schedule_.phase[i] != phase || node.kind == Kind::Reduce || schedule_.late[i])
        continue;
      if (!is_wide() || node.kind != Kind::Number) made.push_back(static_cast<int>(i));
    }
    if (made.empty()) return;
    each_vector([&] {
      for (const int i : made)
        keep_row_value(i, compute(kernel_.nodes[static_cast<size_t>(i)], row_lanes_, row_mask_,
                                  [&](int arg) { return row_value(arg); }));
    });
  }

  // Sums of floats go on in parts of a few hundred terms: to a large sum small terms lose what they have below its last
  // digit, and eager's sums lose less.
  static constexpr int64_t kPart = 256, kShortest = 32;

  int64_t steps_from(size_t level) const { return schedule_.steps_from(kernel_, level); }

  bool sums_in_parts(const ScalarNode& node) const {
    return node.reduce == codegen::ReduceKind::Sum && ir::is_floating(node.type);
  }

  // The innermost loop with enough steps in it.
  bool folds_at(size_t level) const {
    return !totals_.empty() && steps_from(level) >= kShortest && steps_from(level + 1) < kShortest;
  }

  void fold() {
    if (totals_.empty()) return;
    const int lanes = schedule_.lanes;
    each_vector([&] {
      for (const auto& [part, sum] : totals_) {
        const Reg so_far = get_kept(sum.name, sum.type, lanes), more = get_kept(part, sum.type, lanes);
        set_kept(sum.name, emit_primitive(code_, codegen::Prim::Add, {so_far, more}, sum.type));
        set_kept(part, emit_identity(code_, codegen::ReduceKind::Sum, sum.type, lanes));
      }
    });
  }

  // A loop that ends a part of its sums every kPart steps, and behind the last one.
  std::string summing_loop(const Reg& from, const Reg& to, int64_t step, bool folds,
                           const std::function<void(const Reg&)>& body) {
    if (!folds) return loop(from.text, to.text, step, body);
    std::string counter;
    const Reg length = whole(step * kPart);
    const Reg steps = code_.binary("sub nsw", add(to, whole(step * kPart - 1)), from);
    const Reg parts = code_.intrinsic("smax", {whole(1), code_.binary("sdiv", steps, length)});
    loop("0", parts.text, 1, [&](const Reg& part) {
      const Reg begin = add(from, times(part, length));
      const Reg end = code_.intrinsic("smin", {to, add(begin, length)});
      counter = loop(begin.text, end.text, step, body);
      fold();
    });
    return counter;
  }

  // One nest of loops: reductions that become complete with it, and stores of element values.
  void emit_phase(int phase, const Innermost& innermost) {
    std::map<int, std::string> accumulators;
    totals_.clear();
    const int lanes = schedule_.lanes;
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      const ScalarNode& node = kernel_.nodes[i];
      if (node.kind != Kind::Reduce || schedule_.phase[i] != phase + 1) continue;
      const std::string accumulator = kept(node.type, lanes);
      accumulators.emplace(static_cast<int>(i), accumulator);
      if (sums_in_parts(node) && steps_from(0) >= kShortest)
        totals_.emplace(accumulator, Total{kept(node.type, lanes), node.type});
    }
    if (accumulators.empty() && !stores_in(phase)) return;
    if (!accumulators.empty()) each_vector([&] { begin_sums(accumulators); });
    inner_loops(0, [&] { innermost([&](const Reg* mask) { emit_step(phase, accumulators, mask); }); });
    fold();
    if (!accumulators.empty()) each_vector([&] { end_sums(accumulators); });
  }

  void begin_sums(const std::map<int, std::string>& accumulators) {
    for (const auto& [node, accumulator] : accumulators) {
      const ScalarNode& reduce = kernel_.nodes[static_cast<size_t>(node)];
      const Reg identity = emit_identity(code_, reduce.reduce, reduce.type, schedule_.lanes);
      set_kept(accumulator, identity);
      if (const auto parts = totals_.find(accumulator); parts != totals_.end()) set_kept(parts->second.name, identity);
    }
  }

  void end_sums(const std::map<int, std::string>& accumulators) {
    for (const auto& [node, accumulator] : accumulators) {
      const ScalarNode& reduce = kernel_.nodes[static_cast<size_t>(node)];
      const auto parts = totals_.find(accumulator);
      const Reg total =
          get_kept(parts == totals_.end() ? accumulator : parts->second.name, reduce.type, schedule_.lanes);
      const Reg result = row_lanes_ == 1 ? emit_horizontal(code_, reduce.reduce, total) : total;
      if (is_cut())
        code_.store(partial_place(partials_.at(node), unit_), reduce.type, result, nullptr);
      else
        keep_row_value(node, result);
    }
  }

  bool stores_in(int phase) const {
    for (size_t i = 0; i < kernel_.nodes.size(); ++i)
      if (schedule_.adds_across(kernel_, i, phase)) return true;
    return std::any_of(kernel_.stores.begin(), kernel_.stores.end(),
                       [&](const auto& store) { return schedule_.stores_elements(store, phase); });
  }

  void inner_loops(size_t level, const std::function<void()>& body) {
    if (level == schedule_.inner.size()) return body();
    const int axis = schedule_.inner[level];
    const bool cut = in_pieces() && axis == schedule_.cut_axis;
    const Reg from = cut ? cut_from_ : whole(0), to = cut ? cut_to_ : symbolic(extent(axis));
    summing_loop(from, to, 1, folds_at(level), [&](const Reg& i) {
      index_[static_cast<size_t>(axis)] = i;
      inner_loops(level + 1, body);
    });
  }

  void emit_step(int phase, const std::map<int, std::string>& accumulators, const Reg* mask) {
    std::map<int, Reg> values;
    std::function<Reg(int)> value = [&](int i) -> Reg {
      if (!schedule_.is_inner[static_cast<size_t>(i)]) return code_.splat(row_value(i), schedule_.lanes);
      if (auto found = values.find(i); found != values.end()) return found->second;
      const bool spilled = schedule_.spilled[static_cast<size_t>(i)];
      const ScalarNode& node = kernel_.nodes[static_cast<size_t>(i)];
      if (spilled && spills_made_.count(i) && spills_made_.at(i) < phase) {
        const Reg kept = code_.load(spill_place(i), node.type, schedule_.lanes, nullptr);
        return values.emplace(i, kept).first->second;
      }
      const Reg made = compute(node, schedule_.lanes, mask, value);
      if (spilled) {
        spills_made_.emplace(i, phase);
        code_.store(spill_place(i), node.type, made, nullptr);
      }
      return values.emplace(i, made).first->second;
    };
    const bool row_mask = schedule_.shape == Shape::Columns;
    for (const auto& [node, accumulator] : accumulators) {
      const ScalarNode& reduce = kernel_.nodes[static_cast<size_t>(node)];
      Reg x = value(reduce.args[0]);
      if (mask && !row_mask) x = code_.select(*mask, x, emit_identity(code_, reduce.reduce, reduce.type, x.lanes));
      const Reg sum = get_kept(accumulator, reduce.type, x.lanes);
      set_kept(accumulator, emit_primitive(code_, codegen::combiner(reduce.reduce), {sum, x}, x.type));
    }
    for (size_t i = 0; i < kernel_.nodes.size(); ++i)
      if (schedule_.adds_across(kernel_, i, phase)) add_across(static_cast<int>(i), value(kernel_.nodes[i].args[0]));
    std::vector<std::pair<const codegen::KernelStore*, Reg>> written;
    for (const auto& store : kernel_.stores)
      if (schedule_.stores_elements(store, phase)) written.emplace_back(&store, value(store.value));
    // Last: a buffer may be one that was read.
    for (const auto& [store, x] : written) write(store->buffer, store->index, x, mask, schedule_.lanes);
  }

  // Where a row keeps an element value: memory on the stack, padded to whole vectors.
  std::string spill_place(int node) {
    const ir::DType type = kernel_.nodes[static_cast<size_t>(node)].type;
    auto [found, fresh] = spills_.emplace(node, "");
    if (fresh) {
      const std::string bytes = std::to_string(schedule_.row_elements * ir::bytes(type));
      found->second = variable("[" + bytes + " x i8], align 64");
    }
    return code_.element(found->second, type, place_in_row());
  }

  KernelCode result_;
  size_t stage_ = 0;
  ir::Sym slots_ = 0;            // of partial results, per reduction
  std::map<int, int> partials_;  // the order of reductions in memory
  Reg unit_, row_, cut_from_, cut_to_;
  std::map<int, Reg> rows_;                // row values by node
  std::map<int, std::string> row_memory_;  // the same of a wide unit
  Reg from_, to_;                          // a wide unit's columns
  struct Total {
    std::string name;
    DType type;
  };
  std::map<std::string, Total> totals_;  // of this phase's sums, by the variable of their part
  std::map<int, std::string> spills_;    // memory per spilled node
  std::map<int, int> spills_made_;       // the phase that fills it
  int row_lanes_ = 1;
  const Reg* row_mask_ = nullptr;
};

}  // namespace

KernelCode emit_kernel(const Kernel& kernel, const Schedule& schedule, const Target& target, const std::string& name) {
  return KernelEmitter(kernel, schedule, target, name).run();
}

}  // namespace graphlift::cpu
