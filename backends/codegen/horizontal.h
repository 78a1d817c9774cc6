// Owns: which small kernels of one program over different memory run as one call (horizontal fusion): the updates of an
// optimizer's many parameters, above all. Must not: know a target, or how such a call walks its parts.
#pragma once

#include "backends/codegen/fuse.h"

namespace graphlift::codegen {

struct HorizontalOptions {
  int64_t most_elements = 1 << 18;     // of a part; more are worth a call of their own
  int64_t most_early_bytes = 1 << 20;  // of what is made earlier than it is read, to be made in one call
  // Parts of one call are of one kind; empty: no part of anything.
  std::function<std::string(const ir::Node&)> kind = {};
};

// Behind write_in_place(). Parts are element-wise kernels of constant sizes that wait for each other in no way. Calls
// other than kernels and views are moved past by what is made of inputs alone, and by what nobody reads. Counts of
// kernels and their order in `kernels` stay.
void fuse_horizontally(FusedGraph* fused, const HorizontalOptions& options = {});

}  // namespace graphlift::codegen
