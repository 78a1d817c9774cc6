// Owns: convolutions of images with few channels (a network's first one, above all) as products: cuDNN's kernels leave
// most of a GPU idle there. Must not: take convolutions whose patches are large beside their image.
#pragma once

#include <memory>

#include "ir/graph.h"

namespace graphlift::cuda {

// The graph with `graphlift::columns(image, elements, stride, padding, dilation)`, which lays out the patch of each
// result as a row, and products of such rows in place of convolutions and gradients of their weights. 16-bit floats;
// results that have their channels last. Null: there are none that pay.
std::unique_ptr<ir::Graph> with_products_of_patches(const ir::Graph& graph, int8_t device_type);

}  // namespace graphlift::cuda
