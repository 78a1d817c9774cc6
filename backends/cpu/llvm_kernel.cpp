// Owns: see llvm_kernel.h. The function loops over units; a unit computes its row values, then per phase one nest of
// loops over the inner axes, whose innermost runs along the vector axis.
#include "backends/cpu/llvm_kernel.h"

#include <algorithm>
#include <functional>
#include <map>

#include "backends/cpu/llvm_primitives.h"
#include "base/error.h"

namespace graphlift::cpu {
namespace {

using codegen::Affine;
using codegen::Kernel;
using codegen::ScalarNode;
using ir::DType;
using Kind = ScalarNode::Kind;

class KernelEmitter {
 public:
  KernelEmitter(const Kernel& kernel, const Schedule& schedule, const Target& target, std::string name)
      : kernel_(kernel), schedule_(schedule), code_(target) {
    result_.name = std::move(name);
    index_.resize(kernel.axes.size());
    axes_ = codegen::find_axes(kernel);
  }

  KernelCode run() {
    result_.units = 1;
    for (const int axis : schedule_.outer) result_.units = result_.units * extent(axis);
    if (pieces()) result_.units = result_.units * ceildiv(extent(schedule_.vector_axis), schedule_.chunk);
    // Strides of memory without elements say nothing: 0 where the axis is kept.
    if (stores_nothing())
      result_.units = 0;
    else
      loop("%begin", "%end", 1, [&](const Reg& unit) { emit_unit(unit); });
    code_.line("ret void");
    measure_unit();
    result_.text = module();
    return std::move(result_);
  }

 private:
  // --- sizes and numbers ---------------------------------------------------------------------------------------------
  const ir::Sym& extent(int axis) const { return kernel_.axes[static_cast<size_t>(axis)].extent; }
  // Whether units are pieces of the vector axis.
  bool pieces() const { return schedule_.vector_axis >= 0 && schedule_.shape != Shape::Rows; }

  bool stores_nothing() const {
    return std::any_of(kernel_.axes.begin(), kernel_.axes.end(),
                       [](const codegen::KernelAxis& axis) { return !axis.reduced && axis.extent.same(0); });
  }

  Reg symbolic(const ir::Sym& value) {
    if (value.is_constant()) return code_.integer(value.constant(), DType::int64, 1);
    const std::string text = value.str();
    auto [found, fresh] = numbers_.emplace(text, static_cast<int>(result_.numbers.size()));
    if (fresh) result_.numbers.push_back(value);
    return {"%n" + std::to_string(found->second), DType::int64, 1};
  }

  Reg add(const Reg& a, const Reg& b) {
    if (a.text == "0") return b;
    if (b.text == "0") return a;
    return code_.binary("add nsw", a, b);
  }
  Reg times(const Reg& a, const Reg& b) {
    if (a.text == "0" || b.text == "0") return code_.integer(0, DType::int64, 1);
    if (a.text == "1") return b;
    if (b.text == "1") return a;
    return code_.binary("mul nsw", a, b);
  }
  Reg whole(int64_t value) { return code_.integer(value, DType::int64, 1); }

  // --- control -------------------------------------------------------------------------------------------------------
  std::string variable(const std::string& type) {
    const std::string name = "%" + code_.fresh("x");
    allocas_ += "  " + name + " = alloca " + type + "\n";
    return name;
  }
  void set(const std::string& variable, const Reg& value) {
    code_.line("store " + Code::type(value) + " " + value.text + ", ptr " + variable);
  }
  Reg get(const std::string& variable, DType type, int lanes) {
    return code_.define(type, lanes, "load " + Code::type(type, lanes) + ", ptr " + variable);
  }

  // for (i = from; i < to; i += step); leaves the counter behind the last full step.
  std::string loop(const std::string& from, const std::string& to, int64_t step,
                   const std::function<void(const Reg&)>& body) {
    const std::string counter = variable("i64");
    const std::string head = code_.fresh("head"), inside = code_.fresh("body"), done = code_.fresh("done");
    set(counter, {from, DType::int64, 1});
    code_.line("br label %" + head);
    code_.label(head);
    const Reg i = get(counter, DType::int64, 1);
    const Reg last = step == 1 ? i : code_.binary("add nsw", i, whole(step - 1));
    const Reg more = code_.compare("icmp slt", last, {to, DType::int64, 1});
    code_.line("br i1 " + more.text + ", label %" + inside + ", label %" + done);
    code_.label(inside);
    body(i);
    set(counter, code_.binary("add nsw", i, whole(step)));
    code_.line("br label %" + head);
    code_.label(done);
    return counter;
  }

  void when(const Reg& condition, const std::function<void()>& yes, const std::function<void()>& no = {}) {
    const std::string then = code_.fresh("then"), otherwise = code_.fresh("else"), end = code_.fresh("end");
    code_.line("br i1 " + condition.text + ", label %" + then + ", label %" + (no ? otherwise : end));
    code_.label(then);
    yes();
    code_.line("br label %" + end);
    if (no) {
      code_.label(otherwise);
      no();
      code_.line("br label %" + end);
    }
    code_.label(end);
  }

  // --- a unit --------------------------------------------------------------------------------------------------------
  void emit_unit(const Reg& unit) {
    Reg rest = unit;
    Reg from = whole(0);
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

  Reg take(Reg* rest, const Reg& count) {
    if (count.text == "1") return whole(0);
    const Reg part = code_.binary("urem", *rest, count);
    *rest = code_.binary("udiv", *rest, count);
    return part;
  }

  void emit_rows(const Reg& from) {
    Reg to = whole(1);
    if (schedule_.vector_axis >= 0) {
      const ir::Sym& size = extent(schedule_.vector_axis);
      to = symbolic(size);
      if (pieces() && !(size.is_constant() && size.constant() <= schedule_.chunk))
        to = code_.intrinsic("smin", {to, add(from, whole(schedule_.chunk))});
    }
    row_lanes_ = 1;
    row_mask_ = nullptr;
    emit_phases([&](const std::function<void(const Reg*)>& body) { vector_loop(from, to, body); });
  }

  // Lanes along a kept axis: whole columns, or as many as are left.
  void emit_columns(const Reg& from) {
    const int axis = schedule_.vector_axis;
    row_lanes_ = schedule_.lanes;
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
      counter = loop(from.text, to.text, lanes, [&](const Reg& i) {
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
    for (int phase = 0; phase <= schedule_.phases; ++phase) {
      emit_row_values(phase);
      if (phase < schedule_.phases) emit_phase(phase, innermost);
    }
    for (const auto& store : kernel_.stores)
      if (!schedule_.varies(store.index))
        write(store.buffer, store.index, rows_.at(store.value), row_mask_, row_lanes_);
  }

  void emit_row_values(int phase) {
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      const ScalarNode& node = kernel_.nodes[i];
      if (schedule_.is_inner[i] || schedule_.phase[i] != phase || node.kind == Kind::Reduce) continue;
      rows_[static_cast<int>(i)] = compute(node, row_lanes_, row_mask_, [&](int arg) { return rows_.at(arg); });
    }
  }

  // One nest of loops: reductions that become complete with it, and stores of element values.
  void emit_phase(int phase, const Innermost& innermost) {
    std::map<int, std::string> accumulators;
    const int lanes = schedule_.lanes;
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      const ScalarNode& node = kernel_.nodes[i];
      if (node.kind != Kind::Reduce || schedule_.phase[i] != phase + 1) continue;
      const std::string accumulator = variable(Code::type(node.type, lanes));
      set(accumulator, emit_identity(code_, node.reduce, node.type, lanes));
      accumulators.emplace(static_cast<int>(i), accumulator);
    }
    if (accumulators.empty() && !stores_in(phase)) return;
    inner_loops(0, [&] { innermost([&](const Reg* mask) { emit_step(phase, accumulators, mask); }); });
    for (const auto& [node, accumulator] : accumulators) {
      const ScalarNode& reduce = kernel_.nodes[static_cast<size_t>(node)];
      const Reg total = get(accumulator, reduce.type, lanes);
      rows_[node] = row_lanes_ == 1 ? emit_horizontal(code_, reduce.reduce, total) : total;
    }
  }

  bool stores_in(int phase) const {
    return std::any_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const auto& store) {
      return schedule_.varies(store.index) && schedule_.phase[static_cast<size_t>(store.value)] == phase;
    });
  }

  void inner_loops(size_t level, const std::function<void()>& body) {
    if (level == schedule_.inner.size()) return body();
    const int axis = schedule_.inner[level];
    loop("0", symbolic(extent(axis)).text, 1, [&](const Reg& i) {
      index_[static_cast<size_t>(axis)] = i;
      inner_loops(level + 1, body);
    });
  }

  void emit_step(int phase, const std::map<int, std::string>& accumulators, const Reg* mask) {
    std::map<int, Reg> values;
    std::function<Reg(int)> value = [&](int i) -> Reg {
      if (!schedule_.is_inner[static_cast<size_t>(i)]) return code_.splat(rows_.at(i), schedule_.lanes);
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
      const Reg sum = get(accumulator, reduce.type, x.lanes);
      set(accumulator, emit_primitive(code_, codegen::combiner(reduce.reduce), {sum, x}, reduce.type));
    }
    for (const auto& store : kernel_.stores) {
      if (!schedule_.varies(store.index) || schedule_.phase[static_cast<size_t>(store.value)] != phase) continue;
      write(store.buffer, store.index, value(store.value), mask, schedule_.lanes);
    }
  }

  // Where a row keeps an element value: memory on the stack, padded to whole vectors.
  std::string spill_place(int node) {
    const ir::DType type = kernel_.nodes[static_cast<size_t>(node)].type;
    auto [found, fresh] = spills_.emplace(node, "");
    if (fresh) {
      const std::string bytes = std::to_string(schedule_.row_elements * ir::bytes(type));
      found->second = variable("[" + bytes + " x i8], align 64");
    }
    Reg index = whole(0);
    for (const int axis : schedule_.inner)
      index = add(times(index, whole(extent(axis).constant())), index_[static_cast<size_t>(axis)]);
    const int64_t padded = (extent(schedule_.vector_axis).constant() + schedule_.lanes - 1) / schedule_.lanes;
    index = add(times(index, whole(padded * schedule_.lanes)), index_[static_cast<size_t>(schedule_.vector_axis)]);
    return code_.element(found->second, type, index);
  }

  // --- one node ------------------------------------------------------------------------------------------------------
  Reg compute(const ScalarNode& node, int lanes, const Reg* mask, const std::function<Reg(int)>& value) {
    switch (node.kind) {
      case Kind::Load: {
        std::vector<Reg> places;
        for (const int arg : node.args) places.push_back(value(arg));
        return read(node, places, lanes, mask);
      }
      case Kind::Number:
        if (ir::is_floating(node.type)) return code_.real(node.real, node.type, lanes);
        if (node.integer.is_constant()) return code_.integer(node.integer.constant(), node.type, lanes);
        return code_.splat(emit_primitive(code_, codegen::Prim::Cast, {symbolic(node.integer)}, node.type), lanes);
      case Kind::Index:
        return places(node.index, lanes);
      case Kind::Prim: {
        std::vector<Reg> args;
        for (const int arg : node.args) args.push_back(value(arg));
        return emit_primitive(code_, node.prim, args, node.type);
      }
      case Kind::Reduce:
        break;
    }
    GL_CHECK(false, "a reduction is no step");
  }

  // The place of the first lane.
  Reg place(const Affine& index) {
    Reg sum = symbolic(index.offset);
    for (size_t axis = 0; axis < index.strides.size(); ++axis)
      if (!index.strides[axis].same(0)) sum = add(sum, times(index_[axis], symbolic(index.strides[axis])));
    return sum;
  }

  ir::Sym lane_stride(const Affine& index) const {
    return schedule_.vector_axis < 0 ? ir::Sym(0) : index.strides[static_cast<size_t>(schedule_.vector_axis)];
  }

  Reg places(const Affine& index, int lanes) {
    const Reg first = code_.splat(place(index), lanes);
    const ir::Sym stride = lane_stride(index);
    if (lanes == 1 || stride.same(0)) return first;
    const Reg steps = code_.binary("mul nsw", code_.lane_numbers(lanes), code_.splat(symbolic(stride), lanes));
    return code_.binary("add nsw", first, steps);
  }

  std::string base(int buffer) const { return "%b" + std::to_string(buffer); }

  bool varies_by_lane(int node) const {
    return schedule_.vector_axis >= 0 && (axes_[static_cast<size_t>(node)] >> schedule_.vector_axis & 1);
  }

  // `given`: the values of the node's operands, places from data.
  Reg read(const ScalarNode& node, const std::vector<Reg>& given, int lanes, const Reg* mask) {
    const DType dtype = kernel_.buffers[static_cast<size_t>(node.buffer)].dtype;
    const ir::Sym stride = lane_stride(node.index);
    const bool far = std::any_of(node.args.begin(), node.args.end(), [&](int arg) { return varies_by_lane(arg); });
    if (lanes > 1 && (far || !(stride.same(0) || stride.same(1)))) {
      Reg sum = places(node.index, lanes);
      for (size_t i = 0; i < given.size(); ++i) {
        const Reg step = code_.splat(symbolic(node.steps[i]), lanes);
        sum = code_.binary("add nsw", sum, code_.binary("mul nsw", code_.splat(given[i], lanes), step));
      }
      return code_.gather(base(node.buffer), sum, dtype, mask);
    }
    Reg first = place(node.index);
    for (size_t i = 0; i < given.size(); ++i)
      first = add(first, times(code_.part(given[i], 0, 1), symbolic(node.steps[i])));
    const std::string pointer = code_.element(base(node.buffer), dtype, first);
    if (lanes > 1 && stride.same(1)) return code_.load(pointer, dtype, lanes, mask);
    return code_.splat(code_.load(pointer, dtype, 1, nullptr), lanes);
  }

  void write(int buffer, const Affine& index, const Reg& value, const Reg* mask, int lanes) {
    const DType dtype = kernel_.buffers[static_cast<size_t>(buffer)].dtype;
    const Reg typed = code_.splat(value, lanes);
    if (lanes == 1 || lane_stride(index).same(1))
      return code_.store(code_.element(base(buffer), dtype, place(index)), dtype, typed, mask);
    GL_CHECK(!lane_stride(index).same(0), "a store of many lanes into one place");
    code_.scatter(base(buffer), places(index, lanes), dtype, typed, mask);
  }

  // --- the module ----------------------------------------------------------------------------------------------------
  void measure_unit() {
    result_.unit_elements = pieces() ? ir::Sym(schedule_.chunk) : ir::Sym(1);
    if (schedule_.shape == Shape::Rows) result_.unit_elements = extent(schedule_.vector_axis);
    for (const int axis : schedule_.inner) result_.unit_elements = result_.unit_elements * extent(axis);
    result_.element_work = 1;
    for (const ScalarNode& node : kernel_.nodes)
      if (node.kind == Kind::Prim) result_.element_work += row(node.prim).cost == codegen::PrimCost::Costly ? 4 : 0.25;
  }

  std::string module() {
    std::string parameters, loads, arguments;
    // What the function's tables hold becomes parameters of the function that works.
    auto pass = [&](const std::string& type, const char* attribute, const char* table, const std::string& name) {
      parameters += type + attribute + " %" + name + ", ";
      arguments += type + " %" + name + ", ";
      loads += "  %p" + name + " = getelementptr " + type + ", ptr " + table + ", i64 " + name.substr(1) + "\n  %" +
               name + " = load " + type + ", ptr %p" + name + "\n";
    };
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) pass("ptr", " noalias", "%buffers", "b" + std::to_string(i));
    for (size_t i = 0; i < result_.numbers.size(); ++i) pass("i64", "", "%numbers", "n" + std::to_string(i));
    const std::string bits = std::to_string(code_.target().vector_bytes * 8);
    return code_.declarations() + "define internal void @work(" + parameters + "i64 %begin, i64 %end) #0 {\nentry:\n" +
           allocas_ + code_.body() + "}\ndefine void @" + result_.name +
           "(ptr %buffers, ptr %numbers, i64 %begin, i64 %end) #0 {\n" + loads + "  call void @work(" + arguments +
           "i64 %begin, i64 %end)\n  ret void\n}\nattributes #0 = { nounwind \"prefer-vector-width\"=\"" + bits +
           "\" \"min-legal-vector-width\"=\"" + bits + "\" }\n";
  }

  const Kernel& kernel_;
  const Schedule& schedule_;
  Code code_;
  KernelCode result_;
  std::string allocas_;
  std::map<std::string, int> numbers_;
  std::vector<uint64_t> axes_;         // per node, as find_axes() has them
  std::vector<Reg> index_;             // per axis, as far as loops have it
  std::map<int, Reg> rows_;            // row values by node
  std::map<int, std::string> spills_;  // memory per spilled node
  std::map<int, int> spills_made_;     // the phase that fills it
  int row_lanes_ = 1;
  const Reg* row_mask_ = nullptr;
};

}  // namespace

KernelCode emit_kernel(const Kernel& kernel, const Schedule& schedule, const Target& target, const std::string& name) {
  return KernelEmitter(kernel, schedule, target, name).run();
}

}  // namespace graphlift::cpu
