// Owns: see kernel.h.
#include "backends/codegen/kernel.h"

#include <algorithm>

namespace graphlift::codegen {
namespace {

std::string print(const Affine& index) {
  std::string text = "[" + index.offset.str();
  for (size_t axis = 0; axis < index.strides.size(); ++axis) {
    const ir::Sym& stride = index.strides[axis];
    if (stride.same(0)) continue;
    text += " + " + stride.str() + "*a" + std::to_string(axis);
  }
  return text + "]";
}

std::string print_node(const ScalarNode& node) {
  switch (node.kind) {
    case ScalarNode::Kind::Load: {
      std::string text = "load b" + std::to_string(node.buffer) + print(node.index);
      for (size_t i = 0; i < node.args.size(); ++i)
        text += " + " + node.steps[i].str() + "*v" + std::to_string(node.args[i]);
      return text;
    }
    case ScalarNode::Kind::Number: {
      if (!ir::is_floating(node.type)) return "number " + node.integer.str();
      char text[40];
      std::snprintf(text, sizeof text, "number %a", node.real);
      return text;
    }
    case ScalarNode::Kind::Index:
      return "index " + print(node.index);
    default:
      break;
  }
  std::string text(node.kind == ScalarNode::Kind::Prim ? row(node.prim).name : name(node.reduce));
  if (node.kind == ScalarNode::Kind::Reduce) text = "reduce " + text;
  if (node.kind == ScalarNode::Kind::Across) text = "across " + text;
  for (const int arg : node.args) text += " v" + std::to_string(arg);
  return text;
}

template <class Visit>
void for_each_index(Kernel* kernel, Visit visit) {
  for (ScalarNode& node : kernel->nodes)
    if (node.kind == ScalarNode::Kind::Load || node.kind == ScalarNode::Kind::Index) visit(node.index);
  for (KernelStore& store : kernel->stores) visit(store.index);
}

void erase_axis(Kernel* kernel, size_t axis) {
  kernel->axes.erase(kernel->axes.begin() + static_cast<long>(axis));
  for_each_index(kernel, [&](Affine& index) { index.strides.erase(index.strides.begin() + static_cast<long>(axis)); });
}

// Whether axis `outer` steps exactly over the whole of axis `inner` in each access.
bool continues(Kernel* kernel, size_t outer, size_t inner) {
  if (kernel->axes[outer].reduced != kernel->axes[inner].reduced) return false;
  bool fits = true;
  for_each_index(kernel, [&](Affine& index) {
    fits = fits && index.strides[outer].same(index.strides[inner] * kernel->axes[inner].extent);
  });
  return fits;
}

}  // namespace

bool Kernel::has_reduction() const {
  return std::any_of(axes.begin(), axes.end(), [](const KernelAxis& axis) { return axis.reduced; });
}

bool Kernel::has_across() const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const ScalarNode& node) { return node.kind == ScalarNode::Kind::Across; });
}

std::vector<bool> Kernel::find_late() const {
  std::vector<bool> late;
  for (const ScalarNode& node : nodes) {
    bool found = node.kind == ScalarNode::Kind::Across;
    for (const int arg : node.args) found = found || late[static_cast<size_t>(arg)];
    late.push_back(found);
  }
  return late;
}

int Kernel::phases() const {
  int phases = 0;
  for (const ScalarNode& node : nodes)
    if (node.inner) phases = std::max(phases, node.phase + 1);
  return phases;
}

std::string print(const Kernel& kernel) {
  std::string text = "axes";
  for (size_t i = 0; i < kernel.axes.size(); ++i)
    text += " a" + std::to_string(i) + "=" + kernel.axes[i].extent.str() + (kernel.axes[i].reduced ? "r" : "");
  text += "\nbuffers";
  for (const KernelBuffer& buffer : kernel.buffers)
    text += " " + ir::short_name(buffer.dtype) + (buffer.written ? "w" : "");
  text += "\n";
  for (size_t i = 0; i < kernel.nodes.size(); ++i)
    text += "v" + std::to_string(i) + ": " + ir::short_name(kernel.nodes[i].type) + " = " +
            print_node(kernel.nodes[i]) + "\n";
  for (const KernelStore& store : kernel.stores)
    text += "store v" + std::to_string(store.value) + " b" + std::to_string(store.buffer) + print(store.index) + "\n";
  return text;
}

std::vector<uint64_t> find_axes(const Kernel& kernel) {
  std::vector<uint64_t> found;
  uint64_t reduced = 0;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kernel.axes[axis].reduced) reduced |= uint64_t{1} << axis;
  for (const ScalarNode& node : kernel.nodes) {
    uint64_t axes = 0;
    for (const int arg : node.args) axes |= found[static_cast<size_t>(arg)];
    for (size_t axis = 0; axis < node.index.strides.size(); ++axis)
      if (!node.index.strides[axis].same(0)) axes |= uint64_t{1} << axis;
    if (node.kind == ScalarNode::Kind::Reduce) axes &= ~reduced;
    if (node.kind == ScalarNode::Kind::Across) axes &= reduced;
    found.push_back(axes);
  }
  return found;
}

namespace {

// What is made of reductions across rows does not vary with the row, and no row reads it.
std::string verify_across(const Kernel& kernel) {
  if (!kernel.has_across()) return {};
  if (!kernel.has_reduction()) return "a reduction across rows without rows";
  const std::vector<bool> late = kernel.find_late();
  const std::vector<uint64_t> axes = find_axes(kernel);
  uint64_t kept = 0;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (!kernel.axes[axis].reduced) kept |= uint64_t{1} << axis;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    const bool reduces = node.kind == ScalarNode::Kind::Reduce || node.kind == ScalarNode::Kind::Across;
    if (reduces && late[static_cast<size_t>(node.args[0])]) return "a row reads what waits for all rows";
    if (!late[i] || node.kind == ScalarNode::Kind::Across) continue;
    for (const int arg : node.args)
      if (axes[static_cast<size_t>(arg)] & kept ||
          kernel.nodes[static_cast<size_t>(arg)].kind == ScalarNode::Kind::Reduce)
        return "a reduction across rows is used beside what varies with the row";
  }
  for (const KernelStore& store : kernel.stores)
    for (size_t axis = 0; late[static_cast<size_t>(store.value)] && axis < kernel.axes.size(); ++axis)
      if (!kernel.axes[axis].reduced && !store.index.strides[axis].same(0))
        return "a reduction across rows is stored where it varies with the row";
  return {};
}

}  // namespace

std::string verify(const Kernel& kernel) {
  const size_t axes = kernel.axes.size(), buffers = kernel.buffers.size();
  if (axes > 64) return "too many axes";
  auto is_buffer = [&](int i) { return i >= 0 && static_cast<size_t>(i) < buffers; };
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    const std::string at = " at v" + std::to_string(i);
    for (const int arg : node.args)
      if (arg < 0 || static_cast<size_t>(arg) >= i) return "an operand that is not computed before" + at;
    if ((node.kind == ScalarNode::Kind::Load || node.kind == ScalarNode::Kind::Index) &&
        node.index.strides.size() != axes)
      return "an index of other axes" + at;
    if (node.kind == ScalarNode::Kind::Load && !is_buffer(node.buffer)) return "a load of no buffer" + at;
    if (node.kind == ScalarNode::Kind::Load && node.steps.size() != node.args.size())
      return "a load with other steps" + at;
    if ((node.kind == ScalarNode::Kind::Reduce || node.kind == ScalarNode::Kind::Across) && node.args.size() != 1)
      return "a reduction of other than one operand" + at;
    if (node.kind == ScalarNode::Kind::Prim && static_cast<int>(node.args.size()) != row(node.prim).arity)
      return "a primitive with other operands" + at;
  }
  for (const KernelStore& store : kernel.stores) {
    if (store.value < 0 || static_cast<size_t>(store.value) >= kernel.nodes.size()) return "a store of nothing";
    if (!is_buffer(store.buffer) || !kernel.buffers[static_cast<size_t>(store.buffer)].written)
      return "a store into no written buffer";
    if (store.index.strides.size() != axes) return "a store at an index of other axes";
  }
  return verify_across(kernel);
}

void merge_axes(Kernel* kernel) {
  for (size_t axis = kernel->axes.size(); axis-- > 0;)
    if (kernel->axes[axis].extent.same(1)) erase_axis(kernel, axis);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t outer = 0; outer < kernel->axes.size() && !changed; ++outer) {
      for (size_t inner = 0; inner < kernel->axes.size() && !changed; ++inner) {
        if (outer == inner || !continues(kernel, outer, inner)) continue;
        kernel->axes[inner].extent = kernel->axes[outer].extent * kernel->axes[inner].extent;
        erase_axis(kernel, outer);
        changed = true;
      }
    }
  }
}

bool has_constant_places(const Kernel& kernel) {
  auto constant = [](const Affine& index) { return index.offset.is_constant() && ir::is_constant(index.strides); };
  return std::all_of(kernel.nodes.begin(), kernel.nodes.end(),
                     [&](const ScalarNode& node) {
                       return constant(node.index) && ir::is_constant(node.steps) && node.integer.is_constant();
                     }) &&
         std::all_of(kernel.stores.begin(), kernel.stores.end(),
                     [&](const KernelStore& store) { return constant(store.index); });
}

std::optional<Kernel> of_any_size(const Kernel& kernel) {
  if (kernel.axes.size() != 1 || kernel.axes[0].reduced || !has_constant_places(kernel)) return std::nullopt;
  const ir::Sym& extent = kernel.axes[0].extent;
  if (!extent.is_constant() || extent.constant() < 2) return std::nullopt;
  Kernel made = kernel;
  made.axes[0].extent = ir::Sym::symbol(0);
  return made;
}

}  // namespace graphlift::codegen
