// Owns: finding oneDNN's library at run time, the table of its functions that are used here, its engine, and handles
// that destroy what they hold. Must not: be included outside backends/cpu/onednn/, or link oneDNN: without the library
// everything here says why not.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <string>

namespace graphlift::cpu::onednn {

// clang-format off
#define GRAPHLIFT_ONEDNN_FUNCTIONS(FUNCTION)                                                        \
  FUNCTION(dnnl_version) FUNCTION(dnnl_engine_create)                                               \
  FUNCTION(dnnl_stream_create) FUNCTION(dnnl_stream_destroy)                                        \
  FUNCTION(dnnl_memory_desc_create_with_strides) FUNCTION(dnnl_memory_desc_create_with_tag)         \
  FUNCTION(dnnl_memory_desc_clone) FUNCTION(dnnl_memory_desc_destroy)                               \
  FUNCTION(dnnl_memory_desc_equal) FUNCTION(dnnl_memory_desc_get_size)                              \
  FUNCTION(dnnl_memory_create) FUNCTION(dnnl_memory_destroy) FUNCTION(dnnl_memory_set_data_handle)  \
  FUNCTION(dnnl_primitive_attr_create) FUNCTION(dnnl_primitive_attr_destroy)                        \
  FUNCTION(dnnl_primitive_attr_set_scratchpad_mode) FUNCTION(dnnl_primitive_attr_set_post_ops)      \
  FUNCTION(dnnl_post_ops_create) FUNCTION(dnnl_post_ops_destroy)                                    \
  FUNCTION(dnnl_post_ops_append_eltwise) FUNCTION(dnnl_post_ops_append_binary)                      \
  FUNCTION(dnnl_post_ops_append_sum)                                                                \
  FUNCTION(dnnl_primitive_desc_destroy)                                                           \
  FUNCTION(dnnl_primitive_desc_query) FUNCTION(dnnl_primitive_desc_query_md)                        \
  FUNCTION(dnnl_primitive_create) FUNCTION(dnnl_primitive_execute) FUNCTION(dnnl_primitive_destroy) \
  FUNCTION(dnnl_matmul_primitive_desc_create) FUNCTION(dnnl_reorder_primitive_desc_create)          \
  FUNCTION(dnnl_convolution_forward_primitive_desc_create)                                          \
  FUNCTION(dnnl_convolution_backward_data_primitive_desc_create)                                    \
  FUNCTION(dnnl_convolution_backward_weights_primitive_desc_create)
// clang-format on

struct Library {
#define FUNCTION(name) decltype(&::name) name = nullptr;
  GRAPHLIFT_ONEDNN_FUNCTIONS(FUNCTION)
#undef FUNCTION
  dnnl_engine_t engine = nullptr;
  std::string path;
};

// Loaded at the first call, for the life of the process; null when there is none that fits, then `why` says the reason.
// Takes the GIL at the first call.
const Library* library(std::string* why = nullptr);

// Throws InternalError when `status` is a failure.
void check(dnnl_status_t status, const char* doing);

// Destroys a handle with the library's function for it.
struct Destroy {
  void operator()(dnnl_memory_desc_t it) const;
  void operator()(dnnl_primitive_attr_t it) const;
  void operator()(dnnl_post_ops_t it) const;
  void operator()(dnnl_primitive_desc_t it) const;
  void operator()(dnnl_primitive_t it) const;
  void operator()(dnnl_memory_t it) const;
  void operator()(dnnl_stream_t it) const;
};
template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;
using MemoryDesc = Owned<dnnl_memory_desc_t>;
using Attributes = Owned<dnnl_primitive_attr_t>;
using PrimitiveDesc = Owned<dnnl_primitive_desc_t>;

}  // namespace graphlift::cpu::onednn
