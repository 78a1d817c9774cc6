// Owns: making and running primitives.
#include "backends/cpu/onednn/primitive.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace graphlift::cpu::onednn {
namespace {

// Grows to the largest workspace that this thread needed. A run ends before the next on its thread begins.
void* thread_workspace(size_t bytes) {
  thread_local AlignedBuffer buffer;
  if (buffer.size() < bytes) buffer = AlignedBuffer(bytes);
  return buffer.data();
}

// Forms are numbered in the order in which they are first met.
WeightForm number_of(const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to) {
  struct Form {
    MemoryDesc from, to;
  };
  static std::mutex mutex;
  static auto& forms = *new std::vector<Form>;
  const Library& dnnl = *library();
  const std::lock_guard lock(mutex);
  for (size_t i = 0; i < forms.size(); ++i)
    if (dnnl.dnnl_memory_desc_equal(forms[i].from.get(), from) && dnnl.dnnl_memory_desc_equal(forms[i].to.get(), to))
      return i + 1;
  auto clone = [&](const_dnnl_memory_desc_t desc) {
    dnnl_memory_desc_t out = nullptr;
    check(dnnl.dnnl_memory_desc_clone(&out, desc), "copying a description");
    return MemoryDesc(out);
  };
  forms.push_back({clone(from), clone(to)});
  return forms.size();
}

}  // namespace

// Between the address that a run is given and the workspace.
struct Variant::Reorder {
  size_t argument;  // in arguments_
  size_t offset;    // of its buffer in the workspace
  std::unique_ptr<const Variant> in;
  std::unique_ptr<const Variant> out;
};

// The objects that one run at a time uses.
struct Variant::Frame {
  Owned<dnnl_stream_t> stream;
  std::vector<Owned<dnnl_memory_t>> memories;
  std::vector<dnnl_exec_arg_t> arguments;
};

Variant::Variant(PrimitiveDesc desc, const std::vector<Argument>& arguments, int threads)
    : threads(threads), desc_(std::move(desc)), arguments_(arguments) {
  const Library& dnnl = *library();
  dnnl_primitive_t primitive = nullptr;
  check(dnnl.dnnl_primitive_create(&primitive, desc_.get()), "making a primitive");
  primitive_.reset(primitive);
  const_dnnl_memory_desc_t scratchpad = dnnl.dnnl_primitive_desc_query_md(desc_.get(), dnnl_query_scratchpad_md, 0);
  if (scratchpad) scratchpad_ = dnnl.dnnl_memory_desc_get_size(scratchpad);
  workspace_ = aligned(scratchpad_);
  add_reorders();
}

void Variant::add_reorders() {
  const Library& dnnl = *library();
  size_t most = 0;
  auto reorder = [&](const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to) {
    PrimitiveDesc desc = describe_reorder(from, to);
    GL_CHECK(desc, "oneDNN reorders no such memory");
    auto out = std::make_unique<const Variant>(std::move(desc), std::vector<Argument>{{DNNL_ARG_FROM}, {DNNL_ARG_TO}},
                                               threads);
    most = std::max(most, out->workspace_);
    return out;
  };
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& argument = arguments_[i];
    const_dnnl_memory_desc_t wanted = argument_desc(argument.index);
    if (!argument.given || dnnl.dnnl_memory_desc_equal(argument.given.get(), wanted)) continue;
    if (argument.weight) form_ = number_of(argument.given.get(), wanted);
    Reorder added{i, workspace_};
    if (argument.flow != Flow::Out) added.in = reorder(argument.given.get(), wanted);
    if (argument.flow != Flow::In) added.out = reorder(wanted, argument.given.get());
    reorders_.push_back(std::move(added));
    workspace_ += aligned(dnnl.dnnl_memory_desc_get_size(wanted));
  }
  workspace_ += aligned(most);
}

int Variant::reorders() const { return static_cast<int>(reorders_.size()); }

Variant::~Variant() { delete spare_.load(); }

const_dnnl_memory_desc_t Variant::argument_desc(int argument) const {
  return library()->dnnl_primitive_desc_query_md(desc_.get(), dnnl_query_exec_arg_md, argument);
}

std::string Variant::implementation() const {
  const char* text = "";
  library()->dnnl_primitive_desc_query(desc_.get(), dnnl_query_impl_info_str, 0, &text);
  return text;
}

std::unique_ptr<Variant::Frame> Variant::make_frame() const {
  const Library& dnnl = *library();
  auto out = std::make_unique<Frame>();
  dnnl_stream_t stream = nullptr;
  check(dnnl.dnnl_stream_create(&stream, dnnl.engine, dnnl_stream_default_flags), "making a stream");
  out->stream.reset(stream);
  auto add = [&](int argument) {
    dnnl_memory_t memory = nullptr;
    check(dnnl.dnnl_memory_create(&memory, argument_desc(argument), dnnl.engine, DNNL_MEMORY_NONE), "making a memory");
    out->memories.emplace_back(memory);
    out->arguments.push_back({argument, memory});
  };
  for (const Argument& argument : arguments_) add(argument.index);
  if (scratchpad_) add(DNNL_ARG_SCRATCHPAD);
  return out;
}

WeightCopies::Copy Variant::copy(const void* weight) const {
  for (const Reorder& it : reorders_) {
    const Argument& argument = arguments_[it.argument];
    if (!argument.weight) continue;
    auto out = std::make_shared<WeightCopy>(library()->dnnl_memory_desc_get_size(argument_desc(argument.index)));
    void* const both[] = {const_cast<void*>(weight), out->data()};
    it.in->run(both);
    return out;
  }
  return nullptr;
}

void Variant::run(void* const* addresses, bool with_copy) const {
  run(addresses, with_copy, workspace_ ? static_cast<char*>(thread_workspace(workspace_)) : nullptr);
}

void Variant::run(void* const* addresses, bool with_copy, char* workspace) const {
  const Library& dnnl = *library();
  std::unique_ptr<Frame> frame(spare_.exchange(nullptr, std::memory_order_acquire));
  if (!frame) frame = make_frame();
  auto set = [&](size_t at, void* address) {
    check(dnnl.dnnl_memory_set_data_handle(frame->arguments[at].memory, address), "setting an address");
  };
  for (size_t i = 0; i < arguments_.size(); ++i) set(i, addresses[i]);
  if (scratchpad_) set(arguments_.size(), workspace);
  auto reorder = [&](const Variant& copy, void* from, void* to) {
    void* const both[] = {from, to};
    copy.run(both, false, workspace + workspace_ - copy.workspace_);
  };
  for (const Reorder& it : reorders_) {
    if (with_copy && arguments_[it.argument].weight) continue;
    set(it.argument, workspace + it.offset);
    if (it.in) reorder(*it.in, addresses[it.argument], workspace + it.offset);
  }
  check(dnnl.dnnl_primitive_execute(primitive_.get(), frame->stream.get(), static_cast<int>(frame->arguments.size()),
                                    frame->arguments.data()),
        "running a primitive");
  for (const Reorder& it : reorders_)
    if (it.out) reorder(*it.out, workspace + it.offset, addresses[it.argument]);
  delete spare_.exchange(frame.release(), std::memory_order_release);
}

Primitive::Primitive(Describe describe, std::vector<Argument> arguments)
    : describe_(std::move(describe)), arguments_(std::move(arguments)) {}

std::unique_ptr<const Primitive> Primitive::make(Describe describe, std::vector<Argument> arguments) {
  std::unique_ptr<Primitive> out(new Primitive(std::move(describe), std::move(arguments)));
  if (!out->add(at::get_num_threads())) return nullptr;
  return out;
}

Primitive::~Primitive() {
  for (Variant* it = variants_.load(); it;) delete std::exchange(it, it->next);
}

const Variant& Primitive::variant() const {
  // Also inside a parallel region, where oneDNN itself stays on the thread.
  const int threads = at::get_num_threads();
  for (Variant* it = variants_.load(std::memory_order_acquire); it; it = it->next)
    if (it->threads == threads) return *it;
  Variant* added = add(threads);
  GL_CHECK(added, "oneDNN made a primitive for one number of threads and none for another");
  return *added;
}

Variant* Primitive::add(int threads) const {
  const std::lock_guard lock(adding_);
  Variant* first = variants_.load(std::memory_order_acquire);
  for (Variant* it = first; it; it = it->next)
    if (it->threads == threads) return it;
  PrimitiveDesc desc = describe_();
  if (!desc) return nullptr;
  auto* made = new Variant(std::move(desc), arguments_, threads);
  made->next = first;
  variants_.store(made, std::memory_order_release);
  return made;
}

Attributes new_attributes() {
  dnnl_primitive_attr_t out = nullptr;
  check(library()->dnnl_primitive_attr_create(&out), "making attributes");
  Attributes owned(out);
  check(library()->dnnl_primitive_attr_set_scratchpad_mode(out, dnnl_scratchpad_mode_user),
        "setting the scratchpad mode");
  return owned;
}

PrimitiveDesc describe_reorder(const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to) {
  const Library& dnnl = *library();
  const Attributes attributes = new_attributes();
  dnnl_primitive_desc_t out = nullptr;
  dnnl.dnnl_reorder_primitive_desc_create(&out, from, dnnl.engine, to, dnnl.engine, attributes.get());
  return PrimitiveDesc(out);
}

PrimitiveDesc unless_reference(PrimitiveDesc desc) {
  if (!desc) return nullptr;
  const char* text = "";
  library()->dnnl_primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &text);
  return std::strncmp(text, "ref", 3) == 0 ? nullptr : std::move(desc);
}

MemoryDesc strided_desc(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, dnnl_data_type_t type) {
  dnnl_memory_desc_t out = nullptr;
  library()->dnnl_memory_desc_create_with_strides(&out, static_cast<int>(sizes.size()), sizes.data(), type,
                                                  strides.data());
  return MemoryDesc(out);
}

MemoryDesc any_layout_desc(const std::vector<int64_t>& sizes, dnnl_data_type_t type) {
  dnnl_memory_desc_t out = nullptr;
  library()->dnnl_memory_desc_create_with_tag(&out, static_cast<int>(sizes.size()), sizes.data(), type,
                                              dnnl_format_tag_any);
  return MemoryDesc(out);
}

}  // namespace graphlift::cpu::onednn
