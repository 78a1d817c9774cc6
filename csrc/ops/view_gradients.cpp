// Owns: rows of gradients of views, and of the functional forms of writing into a view. Must not: hold views.
#include "ops/family.h"
#include "ops/iterator.h"
#include "ops/results.h"
#include "ops/views.h"

namespace graphlift::ops {
namespace {

using ir::Dims;
using ir::Sym;
using ir::TensorType;

// grad, input_sizes, ...: zeros with the gradient written into them.
bool zeros_of_sizes(ShapeCall& call) { return give_contiguous(call, call.tensor(0), call.syms(1)); }

// grad, input_sizes, dim, index.
bool select_backward(ShapeCall& call) {
  TensorType view = call.tensor(0);
  view.sizes = call.syms(1);
  view.strides.assign(view.sizes.size(), 1);
  return select(call.env, view, call.integer(2), call.sym(3)) && zeros_of_sizes(call);
}

bool holds(ShapeCall& call, const TensorType& view) {
  return view.device == call.tensor(1).device && equal(call.env, view.sizes, call.tensor(1).sizes);
}

bool slice_scatter(ShapeCall& call) {
  TensorType view = call.tensor(0);
  return slice(call, view, 2) && holds(call, view) && give_self_copied(call);
}

bool select_scatter(ShapeCall& call) {
  TensorType view = call.tensor(0);
  return select(call.env, view, call.integer(2), call.sym(3)) && holds(call, view) && give_self_copied(call);
}

bool diagonal_scatter(ShapeCall& call) {
  TensorType view = call.tensor(0);
  return diagonal(call.env, view, call.integer(2), call.integer(3), call.integer(4)) && holds(call, view) &&
         give_self_copied(call);
}

bool as_strided_scatter(ShapeCall& call) {
  return equal(call.env, call.syms(2), call.tensor(1).sizes) && give_self_copied(call);
}

constexpr OpRow kViewGradients[] = {
    GL_OP("slice_backward", "default", zeros_of_sizes),     GL_OP("select_backward", "default", select_backward),
    GL_OP("diagonal_backward", "default", zeros_of_sizes),  GL_OP("unfold_backward", "default", zeros_of_sizes),
    GL_OP("slice_scatter", "default", slice_scatter),       GL_OP("select_scatter", "default", select_scatter),
    GL_OP("diagonal_scatter", "default", diagonal_scatter), GL_OP("as_strided_scatter", "default", as_strided_scatter),
};

}  // namespace

std::span<const OpRow> view_gradients_rows() { return kViewGradients; }

}  // namespace graphlift::ops
