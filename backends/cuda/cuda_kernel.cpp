// Owns: see cuda_kernel.h. A thread finds its row or columns, computes their values, then per phase one loop along the
// reduced axes whose results the threads of a row join. With splits each phase is a launch: it begins with what the
// launches before left in the workspace.
#include "backends/cuda/cuda_kernel.h"

#include <algorithm>

#include "backends/cuda/cuda_across.h"
#include "backends/cuda/cuda_expression.h"
#include "backends/cuda/cuda_prelude.h"
#include "backends/cuda/kernel_name.h"
#include "base/error.h"

namespace graphlift::cuda {
namespace {

using codegen::Kernel;
using codegen::ScalarNode;
using ir::Sym;
using Kind = ScalarNode::Kind;

// Whether results are rounded so far that fast functions do. Values that may be computed again to be compared are not
// theirs: what a maximum is found in, and what is equal to one.
bool computes_nearly(const Kernel& kernel) {
  using codegen::Prim;
  auto is_exact = [&](const ScalarNode& node) {
    if (node.kind == Kind::Prim) return node.prim == Prim::Eq || node.prim == Prim::Ne;
    const bool picks = (node.kind == Kind::Reduce || node.kind == Kind::Across) &&
                       (node.reduce == codegen::ReduceKind::Max || node.reduce == codegen::ReduceKind::Min);
    return picks && kernel.nodes[static_cast<size_t>(node.args[0])].kind != Kind::Load;
  };
  if (std::any_of(kernel.nodes.begin(), kernel.nodes.end(), is_exact)) return false;
  bool rounded = false;
  for (const auto& buffer : kernel.buffers) {
    if (!ir::is_floating(buffer.dtype)) continue;
    if (ir::bytes(buffer.dtype) > 2) return false;
    rounded = rounded || buffer.written;
  }
  return rounded;
}

class KernelEmitter : AcrossWriter {
 public:
  KernelEmitter(const Kernel& kernel, const Schedule& schedule, const std::vector<bool>& by_value)
      : AcrossWriter(kernel, schedule, by_value), by_value_(by_value) {}

  KernelSource run() {
    if (schedule_.walkers > 0)
      emit_walking();
    else if (schedule_.splits > 1)
      emit_phases();
    else
      emit_function(-1);
    if (result_.alignment.empty()) result_.alignment = values_.alignment();
    result_.numbers = values_.numbers();
    result_.wide = schedule_.wide;
    std::string text = types();
    text += cuda_prelude();
    for (size_t i = 0; i < bodies_.size(); ++i) text += signature(result_.launches[i]) + bodies_[i] + "}\n";
    result_.text = std::move(text);
    return std::move(result_);
  }

  KernelSource run_parts() {
    GL_CHECK(schedule_.shape == Shape::Elements && !schedule_.wide, "parts of a launch are element-wise");
    result_ = run();
    const int numbers = static_cast<int>(result_.numbers.size());
    result_.part_bytes = (8 * static_cast<int>(kernel_.buffers.size()) + 4 * (numbers + 1) + 7) / 8 * 8;
    std::string body = bodies_[0], parameters, arguments;
    for (size_t at = 0; (at = body.find("blockIdx.x", at)) != std::string::npos;) body.replace(at, 10, "block");
    put_parameters(&parameters);
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const std::string type = memory_name(kernel_.buffers[i].dtype),
                        place = "p.b + " + std::to_string(static_cast<int64_t>(i));
      arguments +=
          by_value_[i] ? ", *(const " + type + "*)(" + place + ")" : ", *(" + type + "* const*)(" + place + ")";
    }
    for (int i = 0; i < numbers; ++i) arguments += ", p.n[" + std::to_string(i) + "]";
    result_.text =
        types() + std::string(cuda_prelude()) + "struct gl_part { unsigned long long b[" +
        std::to_string(static_cast<int64_t>(kernel_.buffers.size())) + "]; int n[" + std::to_string(numbers + 1) +
        "]; };\n" + "struct gl_parts { gl_part of[" + std::to_string(kTableBytes / result_.part_bytes) + "]; };\n" +
        "struct gl_table { union { gl_parts parts; unsigned char all[" + std::to_string(kTableBytes) +
        "]; }; int count; };\n" + "__device__ inline void gl_part_of(const unsigned block, " + parameters + ") {\n" +
        body + "}\n" + "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(schedule_.threads) + ") " +
        result_.launches[0].name + "(const GL_CONSTANT gl_table table) {\n" +
        "  unsigned at = 0, end = (unsigned)table.count;\n" + "  while (end - at > 1) {\n" +
        "    const unsigned middle = (at + end) / 2;\n" + "    if ((unsigned)table.parts.of[middle].n[" +
        std::to_string(numbers) + "] <= blockIdx.x) at = middle; else end = middle;\n  }\n" +
        "  const gl_part& p = table.parts.of[at];\n" + "  gl_part_of(blockIdx.x - (unsigned)p.n[" +
        std::to_string(numbers) + "]" + arguments + ");\n}\n";
    return std::move(result_);
  }

 private:
  std::string types() const {
    const std::string how = computes_nearly(kernel_) ? "#define GL_NEARLY\n" : "";
    return how + (schedule_.wide ? "typedef long long idx;\ntypedef unsigned long long uidx;\n"
                                 : "typedef int idx;\ntypedef unsigned uidx;\n");
  }

  // --- the program ---------------------------------------------------------------------------------------------------
  std::string next_name() const { return kernel_name(kernel_, schedule_, static_cast<int>(bodies_.size())); }

  void put_parameters(std::string* to) const {
    std::string& parameters = *to;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const auto& buffer = kernel_.buffers[i];
      const std::string type = memory_name(buffer.dtype), name = "b" + std::to_string(static_cast<int64_t>(i));
      parameters += i ? ", " : "";
      if (by_value_[i])
        parameters += type + " " + name;
      else
        parameters += (buffer.written ? "" : "const ") + type + "* __restrict__ " + name;
    }
    for (size_t i = 0; i < result_.numbers.size(); ++i)
      parameters += ", idx n" + std::to_string(static_cast<int64_t>(i));
  }

  std::string signature(const KernelLaunch& launch) const {
    std::string parameters;
    put_parameters(&parameters);
    if (result_.has_workspace) parameters += ", unsigned char* work";
    const std::string resident = launch.resident > 0 ? ", " + std::to_string(launch.resident) : "";
    return "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(launch.threads) + resident + ") " +
           launch.name + "(" + parameters + ") {\n";
  }

  void emit_phases() {
    for (int phase = 0; phase < schedule_.phases; ++phase) {
      emit_function(phase);
      if (is_joined(phase)) emit_join(phase);
    }
    result_.alignment = values_.alignment();
    if (stores_rows(schedule_.phases)) {
      if (!is_rows()) narrow();
      emit_function(schedule_.phases);
    }
    result_.has_workspace = true;
    result_.workspace = rows() * (kSlotBytes * schedule_.splits * static_cast<int64_t>(slots_.size()));
  }

  void emit_walking() {
    values_.begin();
    open_walk();
    emit_rows(-1);
    close_walk();
    result_.launches.push_back(
        {next_name(), blocks(), 1, schedule_.threads, static_cast<int>(values_.shared_bytes()), schedule_.resident});
    bodies_.push_back(values_.take());
    result_.alignment = values_.alignment();
    const Sym joining = emit_walkers_join();
    result_.launches.push_back({next_name(), joining, 1, kJoinThreads});
    bodies_.push_back(values_.take());
    result_.has_workspace = true;
    result_.workspace = across_bytes();
  }

  // `launch`: the phase that is run, with splits; -1: all of them.
  void emit_function(int launch) {
    launch_ = launch;
    values_.begin();
    emit_place();
    emit_rows(launch);
    const bool loops = launch < schedule_.phases;
    const bool splits = launch >= 0 && loops;
    result_.launches.push_back({next_name(), blocks(), splits ? schedule_.splits : 1, schedule_.threads,
                                static_cast<int>(values_.shared_bytes()), splits ? schedule_.resident : 0});
    bodies_.push_back(values_.take());
  }

  // What a thread does at its place.
  void emit_rows(int launch) {
    for (int phase = 0; phase <= schedule_.phases; ++phase) {
      values_.row_values(phase, launch < 0 || launch == phase, store_guard());
      if (phase == schedule_.phases) break;
      if (launch >= 0 && phase < launch)
        join_partials(phase);
      else
        emit_phase(phase);
      if (phase == launch) break;
    }
  }

  // Blocks of a later launch would each read all partial results of their columns: a launch between joins them once.
  bool is_joined(int phase) const { return !is_rows() && phase + 1 < schedule_.phases && !reductions(phase).empty(); }

  // Partial results are read by many threads for each of few columns: what takes time is waiting for memory.
  static constexpr int kPartsPerThread = 8, kMostJoinLines = 64;

  int join_lines() const {
    int lines = 1;
    while (lines < kMostJoinLines && lines * kPartsPerThread < schedule_.splits) lines *= 2;
    return lines;
  }

  // For what is left to do once per column.
  void narrow() {
    schedule_.across = kJoinThreads / join_lines();
    schedule_.threads = kJoinThreads;
    schedule_.lanes = 1;
    schedule_.ragged = false;
  }

  void emit_join(int phase) {
    const int line_count = join_lines(), across = kJoinThreads / line_count;
    values_.begin();
    const std::string all = values_.number(rows());
    line("const idx place = (idx)blockIdx.x * " + std::to_string(across) + " + (idx)threadIdx.x % " +
         std::to_string(across) + ";");
    line("const idx line = (idx)threadIdx.x / " + std::to_string(across) + ";");
    line("const bool active = place < " + all + ";");
    line("const idx parts = active ? " + std::to_string(schedule_.splits) + " : 0;");
    for (const int reduction : reductions(phase)) {
      const std::string name = "r" + std::to_string(reduction), how = combine_name(node(reduction).reduce);
      line(compute_name(node(reduction).type) + std::string(" ") + name + " = " +
           identity_text(node(reduction).reduce, node(reduction).type) + ";");
      line("#pragma unroll 8");
      line("for (idx part = line; part < parts; part += " + std::to_string(line_count) + ") " + name + " = " + how +
           "::of(" + name + ", " + slot(reduction) + "[part * " + all + " + place]);");
    }
    for (const int reduction : reductions(phase)) {
      const std::string name = "r" + std::to_string(reduction);
      put_join(reduction, across, kJoinThreads, 1);
      line("if (active && line == 0) " + slot(reduction) + "[place] = " + name + ";");
    }
    result_.launches.push_back({next_name(), ceildiv(rows(), across), 1, kJoinThreads});
    bodies_.push_back(values_.take());
  }

  bool stores_rows(int phase) const {
    return std::any_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const auto& store) {
      return !varies(kernel_, store.index) && schedule_.phase[static_cast<size_t>(store.value)] == phase;
    });
  }

  // Which threads write the values of a row.
  std::string store_guard() const {
    if (!schedule_.reduces()) return "";
    std::string guard = "active";
    if (is_rows() ? schedule_.across > 1 : lines() > 1) guard += is_rows() ? " && lane == 0" : " && line == 0";
    if (launch_ >= 0 && launch_ < schedule_.phases) guard += " && blockIdx.y == 0";
    return guard;
  }

  // --- phases --------------------------------------------------------------------------------------------------------
  std::vector<int> reductions(int phase) const {
    std::vector<int> found;
    for (size_t i = 0; i < kernel_.nodes.size(); ++i)
      if (kernel_.nodes[i].kind == Kind::Reduce && schedule_.phase[i] == phase + 1 &&
          values_.is_live(static_cast<int>(i)))
        found.push_back(static_cast<int>(i));
    return found;
  }

  const ScalarNode& node(int i) const { return kernel_.nodes[static_cast<size_t>(i)]; }

  void declare(int reduction) {
    const std::string type = compute_name(node(reduction).type), name = "r" + std::to_string(reduction);
    const std::string identity = identity_text(node(reduction).reduce, node(reduction).type);
    if (values_.row_lanes() == 1) return line(type + " " + name + " = " + identity + ";");
    line(type + " " + name + "[" + std::to_string(values_.row_lanes()) + "];");
    line("#pragma unroll");
    line("for (int j = 0; j < " + std::to_string(values_.row_lanes()) + "; ++j) " + name + "[j] = " + identity + ";");
  }

  void emit_phase(int phase) {
    const std::vector<int> reduced = reductions(phase);
    if (reduced.empty() && !values_.has_elements(phase)) return;
    for (const int reduction : reduced) declare(reduction);
    values_.declare_kept(phase);
    if (schedule_.peeled) emit_edges(phase, reduced);
    open_loop(phase);
    values_.element_values(phase, reduced);
    close_loop();
    join_shifting(reduced);
    if (launch_ < 0) return;
    for (const int reduction : reduced) leave_partial(reduction);
  }

  // The elements of a peeled row that are in no vector: one for each of some threads.
  void emit_edges(int phase, const std::vector<int>& reduced) {
    const int lanes = schedule_.lanes;
    const std::string all = values_.number(elements()), in_vectors = "vectors * " + std::to_string(lanes);
    line("if (active && lane < " + all + " - " + in_vectors +
         (schedule_.splits > 1 ? " && blockIdx.y == 0) {" : ") {"));
    line("const idx own = " + in_vectors + " + lane;");
    line("const idx a" + std::to_string(schedule_.vector_axis) + " = lane < head ? lane : own;");
    if (schedule_.keeps) line("const int s = " + std::to_string(schedule_.steps * lanes) + ";");
    schedule_.lanes = 1;
    values_.element_values(phase, reduced);
    schedule_.lanes = lanes;
    line("}");
  }

  void open_loop(int phase) {
    const std::string all = schedule_.peeled ? "vectors" : values_.number(steps());
    std::string from = is_rows() ? "lane" : "line";
    const std::string step = std::to_string(is_rows() ? schedule_.across : lines());
    nested_ = 1;
    if (schedule_.steps > 0) {
      line("#pragma unroll");
      line("for (int s = 0; s < " + std::to_string(schedule_.steps) + "; ++s) {");
      line("const idx r = lane + s * " + step + ";");
      const bool whole = !schedule_.peeled && steps().is_constant() &&
                         steps().constant() == int64_t{schedule_.steps} * schedule_.across;
      if (!whole || !is_exact()) {
        const std::string within = whole ? "" : "r < " + all;
        line("if (" + (is_exact() ? within : whole ? "active" : "active && " + within) + ") {");
        ++nested_;
      }
    } else {
      std::string end = all;
      line("{");
      if (schedule_.splits > 1) {
        line("const idx part = (" + all + " + " + std::to_string(schedule_.splits - 1) + ") / " +
             std::to_string(schedule_.splits) + ";");
        line("const idx first = (idx)blockIdx.y * part;");
        from = "first + " + from;
        end = "first + part < " + all + " ? first + part : " + all;
      }
      line("const idx end = active ? " + (schedule_.splits > 1 ? "(" + end + ")" : end) + " : 0;");
      line("#pragma unroll " + std::to_string(loads_in_flight()));
      // Each launch begins where the one before ended, with what the cache still has.
      const bool back = schedule_.splits > 1 && phase % 2 == 1;
      const std::string at = back ? "q" : "r";
      line("for (idx " + at + " = " + from + "; " + at + " < end; " + at + " += " + step + ") {");
      if (back) line("const idx r = first + end - 1 - q;");
      ++nested_;
    }
    if (schedule_.room > 0) line("const idx own = r * " + std::to_string(schedule_.lanes) + ";");
    if (schedule_.stages > 0)
      line("const idx own = (s * " + std::to_string(schedule_.threads) + " + (idx)threadIdx.x) * " +
           std::to_string(schedule_.lanes) + ";");
    if (!schedule_.peeled) return values_.indices("r", schedule_.inner);
    line("const idx a" + std::to_string(schedule_.vector_axis) + " = head + r * " + std::to_string(schedule_.lanes) +
         ";");
  }

  // Of a thread: more where a processor has few threads, and where a vector of many elements is soon used up.
  int loads_in_flight() const {
    if (!is_rows()) return std::max(4, schedule_.lanes);
    return std::max(schedule_.room > 0 ? 4 : 2, 8 / schedule_.lanes);
  }

  void close_loop() {
    for (; nested_ > 0; --nested_) line("}");
  }

  void put_join(int reduction, int across, int threads, int lanes) {
    if (across == threads) return;
    const ScalarNode& of = node(reduction);
    values_.need_room(threads * lanes * ir::bytes(of.type));
    line("gl_down_columns<" + std::string(combine_name(of.reduce)) + ", " + std::to_string(across) + ", " +
         std::to_string(threads) + ", " + std::to_string(lanes) + ">(" + (lanes == 1 ? "&" : "") + "r" +
         std::to_string(reduction) + ", (" + compute_name(of.type) + "*)room);");
  }

  // Sums that a maximum shifts are made for the joined one first.
  void join_shifting(const std::vector<int>& reduced) {
    std::vector<int> shifted, others;
    for (const int reduction : reduced) (values_.maximum(reduction) < 0 ? others : shifted).push_back(reduction);
    auto most = [&](int reduction) { return "r" + std::to_string(values_.maximum(reduction)); };
    for (const int sum : shifted)
      line("const " + std::string(compute_name(node(sum).type)) + " own" + std::to_string(sum) + " = " + most(sum) +
           ";");
    join(others);
    for (const int sum : shifted)
      line("r" + std::to_string(sum) + " = gl_rescaled(r" + std::to_string(sum) + ", own" + std::to_string(sum) + ", " +
           most(sum) + ");");
    join(shifted);
  }

  // The threads of a row or column each get the joined values.
  void join(const std::vector<int>& reduced) {
    if (is_rows() && schedule_.across == schedule_.threads && schedule_.threads > 1) return join_by_blocks(reduced);
    for (const int reduction : reduced) {
      if (!is_rows())
        put_join(reduction, schedule_.across, schedule_.threads, schedule_.lanes);
      else if (schedule_.across > 1)
        line("r" + std::to_string(reduction) + " = gl_across<" + combine_name(node(reduction).reduce) + ", " +
             std::to_string(schedule_.across) + ">(r" + std::to_string(reduction) + ");");
    }
  }

  // One barrier for all; two alike are joined together.
  void join_by_blocks(const std::vector<int>& reduced) {
    std::vector<std::pair<int, int>> pairs;
    for (const int reduction : reduced) {
      const auto alike = std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) {
        const ScalarNode &a = node(pair.first), &b = node(reduction);
        return pair.second < 0 && a.reduce == b.reduce && a.type == b.type;
      });
      if (alike == pairs.end())
        pairs.emplace_back(reduction, -1);
      else
        alike->second = reduction;
    }
    auto names = [&](const std::pair<int, int>& pair) {
      return "r" + std::to_string(pair.first) + (pair.second < 0 ? "" : ", r" + std::to_string(pair.second)) +
             ", room" + std::to_string(pair.first) + (schedule_.walkers > 0 ? "[turn]" : "") + ");";
    };
    for (const auto& pair : pairs) {
      line("__shared__ " + std::string(compute_name(node(pair.first).type)) + " room" + std::to_string(pair.first) +
           (schedule_.walkers > 0 ? "[2]" : "") + (pair.second < 0 ? "[32];" : "[64];"));
      line("gl_block_leave<" + combine_name(node(pair.first).reduce) + ">(" + names(pair));
    }
    if (!pairs.empty()) line("__syncthreads();");
    for (const auto& pair : pairs)
      line("gl_block_join<" + combine_name(node(pair.first).reduce) + ", " + std::to_string(schedule_.threads) + ">(" +
           names(pair));
  }

  // --- partial results -----------------------------------------------------------------------------------------------
  std::string slot(int reduction) {
    auto found = std::find(slots_.begin(), slots_.end(), reduction);
    if (found == slots_.end()) found = slots_.insert(slots_.end(), reduction);
    const std::string type = compute_name(node(reduction).type);
    const std::string all = values_.number(rows());
    return "((" + type + "*)(work + (long long)" + all + " * " +
           std::to_string(kSlotBytes * schedule_.splits * (found - slots_.begin())) + "))";
  }

  // The workspace holds a value per split and row, rows next to each other.
  void leave_partial(int reduction) {
    const std::string to = slot(reduction) + "[(idx)blockIdx.y * " + values_.number(rows()) + " + ";
    const std::string guard = is_rows() ? "active && lane == 0" : "active && line == 0";
    if (values_.row_lanes() == 1)
      return line("if (" + guard + ") " + to + "place] = r" + std::to_string(reduction) + ";");
    line("if (" + guard + ") {");
    line("#pragma unroll");
    line("for (int j = 0; j < " + std::to_string(schedule_.lanes) + "; ++j) " + to + "place * " +
         std::to_string(schedule_.lanes) + " + j] = r" + std::to_string(reduction) + "[j];");
    line("}");
  }

  void join_partials(int phase) {
    const std::string all = values_.number(rows());
    for (const int reduction : reductions(phase)) {
      declare(reduction);
      const std::string name = "r" + std::to_string(reduction), how = combine_name(node(reduction).reduce);
      const std::string from = slot(reduction);
      if (is_joined(phase)) {
        line("if (active) {");
        line("#pragma unroll");
        line("for (int j = 0; j < " + std::to_string(schedule_.lanes) + "; ++j) " + name +
             (values_.row_lanes() == 1 ? "" : "[j]") + " = " + from + "[place * " + std::to_string(schedule_.lanes) +
             " + j];");
        line("}");
        continue;
      }
      line("#pragma unroll 8");
      line("for (idx part = " + std::string(is_rows() ? "lane" : "line") + "; part < (active ? " +
           std::to_string(schedule_.splits) +
           " : 0); part += " + std::to_string(is_rows() ? schedule_.across : lines()) + ") {");
      const std::string at = "[part * " + all + " + place]";
      if (values_.maximum(reduction) >= 0) {
        const int most = values_.maximum(reduction);
        line(name + " += gl_rescaled(" + from + at + ", " + slot(most) + at + ", r" + std::to_string(most) + ");");
      } else if (values_.row_lanes() == 1) {
        line(name + " = " + how + "::of(" + name + ", " + from + at + ");");
      } else {
        line("#pragma unroll");
        line("for (int j = 0; j < " + std::to_string(schedule_.lanes) + "; ++j) " + name + "[j] = " + how + "::of(" +
             name + "[j], " + from + "[part * " + all + " + place * " + std::to_string(schedule_.lanes) + " + j]);");
      }
      line("}");
      join({reduction});
    }
  }

  const std::vector<bool>& by_value_;
  KernelSource result_;
  std::vector<std::string> bodies_;
  std::vector<int> slots_;  // reductions with partial results
  int launch_ = -1;
  int nested_ = 0;
};

}  // namespace

KernelSource emit_kernel(const Kernel& kernel, const Schedule& schedule, const std::vector<bool>& by_value) {
  return KernelEmitter(kernel, schedule, by_value).run();
}

KernelSource emit_multi_kernel(const Kernel& kernel, const Schedule& schedule, const std::vector<bool>& by_value) {
  return KernelEmitter(kernel, schedule, by_value).run_parts();
}

}  // namespace graphlift::cuda
