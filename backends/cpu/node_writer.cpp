// Owns: see node_writer.h.
#include "backends/cpu/node_writer.h"

#include <algorithm>

#include "base/error.h"

namespace graphlift::cpu {

using codegen::Affine;
using codegen::ScalarNode;
using ir::DType;
using Kind = ScalarNode::Kind;

NodeWriter::NodeWriter(const codegen::Kernel& kernel, const Schedule& schedule, const Target& target)
    : LoopWriter(target),
      kernel_(kernel),
      schedule_(schedule),
      index_(kernel.axes.size()),
      axes_(codegen::find_axes(kernel)) {}

Reg NodeWriter::compute(const ScalarNode& node, int lanes, const Reg* mask, const std::function<Reg(int)>& value) {
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
    case Kind::Across:
      break;
  }
  GL_CHECK(false, "a reduction is no step");
}

Reg NodeWriter::place(const Affine& index) {
  Reg sum = symbolic(index.offset);
  for (size_t axis = 0; axis < index.strides.size(); ++axis)
    if (!index.strides[axis].same(0)) sum = add(sum, times(index_[axis], symbolic(index.strides[axis])));
  return sum;
}

ir::Sym NodeWriter::lane_stride(const Affine& index) const {
  return schedule_.vector_axis < 0 ? ir::Sym(0) : index.strides[static_cast<size_t>(schedule_.vector_axis)];
}

Reg NodeWriter::lane_steps(const Affine& index, int lanes) {
  const ir::Sym stride = lane_stride(index);
  if (lanes == 1 || stride.same(0)) return code_.integer(0, DType::int64, lanes);
  if (stride.is_constant()) return code_.lane_numbers(lanes, stride.constant());
  return code_.binary("mul nsw", code_.lane_numbers(lanes), code_.splat(symbolic(stride), lanes));
}

Reg NodeWriter::places(const Affine& index, int lanes) {
  const Reg first = code_.splat(place(index), lanes);
  if (lanes == 1 || lane_stride(index).same(0)) return first;
  return code_.binary("add nsw", first, lane_steps(index, lanes));
}

bool NodeWriter::varies_by_lane(int node) const {
  return schedule_.vector_axis >= 0 && (axes_[static_cast<size_t>(node)] >> schedule_.vector_axis & 1);
}

void NodeWriter::ask_ahead(const std::string& pointer, const Affine& index, DType dtype, int lanes) {
  if (schedule_.ahead < 0 || index.strides[static_cast<size_t>(schedule_.ahead)].same(0)) return;
  constexpr int kLine = 64;
  const Reg step = symbolic(index.strides[static_cast<size_t>(schedule_.ahead)]);
  code_.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)");
  for (int at = 0; at < lanes * ir::bytes(dtype); at += kLine) {
    const std::string place = code_.element(pointer, dtype, add(step, whole(at / ir::bytes(dtype))));
    code_.line("call void @llvm.prefetch.p0(ptr " + place + ", i32 0, i32 2, i32 1)");  // into the second cache
  }
}

Reg NodeWriter::read(const ScalarNode& node, const std::vector<Reg>& given, int lanes, const Reg* mask) {
  const DType dtype = kernel_.buffers[static_cast<size_t>(node.buffer)].dtype;
  const ir::Sym stride = lane_stride(node.index);
  const bool far = std::any_of(node.args.begin(), node.args.end(), [&](int arg) { return varies_by_lane(arg); });
  // What is the same in all lanes goes into the pointer.
  Reg first = place(node.index), steps = lane_steps(node.index, lanes);
  for (size_t i = 0; i < given.size(); ++i) {
    const Reg step = symbolic(node.steps[i]);
    if (lanes > 1 && varies_by_lane(node.args[i]))
      steps = code_.binary("add nsw", steps,
                           code_.binary("mul nsw", code_.splat(given[i], lanes), code_.splat(step, lanes)));
    else
      first = add(first, times(code_.part(given[i], 0, 1), step));
  }
  const std::string pointer = code_.element(base(node.buffer), dtype, first);
  if (lanes > 1 && (far || !(stride.same(0) || stride.same(1)))) return code_.gather(pointer, steps, dtype, mask);
  if (lanes > 1 && stride.same(1)) {
    ask_ahead(pointer, node.index, dtype, lanes);
    return code_.load(pointer, dtype, lanes, mask);
  }
  return code_.splat(code_.load(pointer, dtype, 1, nullptr), lanes);
}

void NodeWriter::write(int buffer, const Affine& index, const Reg& value, const Reg* mask, int lanes) {
  const DType dtype = kernel_.buffers[static_cast<size_t>(buffer)].dtype;
  const Reg typed = code_.splat(value, lanes);
  const std::string pointer = code_.element(base(buffer), dtype, place(index));
  if (lanes == 1 || lane_stride(index).same(1)) return code_.store(pointer, dtype, typed, mask);
  GL_CHECK(!lane_stride(index).same(0), "a store of many lanes into one place");
  code_.scatter(pointer, lane_steps(index, lanes), dtype, typed, mask);
}

}  // namespace graphlift::cpu
