// Owns: outputs of a region that are more than a fresh tensor: views, inference tensors, parameters.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <numeric>

#include "torch/convert.h"
#include "torch/executable.h"

namespace graphlift::torch_layer {
namespace {

bool same_geometry(const at::Tensor& tensor, const Geometry& geometry) {
  return tensor.sizes().equals(geometry.sizes) && tensor.strides().equals(geometry.strides) &&
         tensor.storage_offset() == geometry.offset;
}

// The permutation of `tensor`'s dimensions that gives the geometry, if there is exactly one way to see it so.
bool find_permutation(const at::Tensor& tensor, const Geometry& geometry, c10::SmallVectorImpl<int64_t>* order) {
  const int64_t rank = tensor.dim();
  if (static_cast<int64_t>(geometry.sizes.size()) != rank || tensor.storage_offset() != geometry.offset) return false;
  c10::SmallVector<bool, 6> taken(static_cast<size_t>(rank), false);
  for (size_t i = 0; i < geometry.sizes.size(); ++i) {
    int64_t found = -1;
    for (int64_t d = 0; d < rank && found < 0; ++d)
      if (!taken[static_cast<size_t>(d)] && tensor.size(d) == geometry.sizes[i] &&
          tensor.stride(d) == geometry.strides[i])
        found = d;
    if (found < 0) return false;
    taken[static_cast<size_t>(found)] = true;
    order->push_back(found);
  }
  return true;
}

// Exactly as view() lays it out, dims of size 1 too.
bool is_contiguous(const Geometry& geometry) {
  int64_t expected = 1;
  for (size_t i = geometry.sizes.size(); i-- > 0;) {
    if (geometry.strides[i] != expected) return false;
    expected *= geometry.sizes[i];
  }
  return true;
}

int64_t numel(const Geometry& geometry) {
  return std::accumulate(geometry.sizes.begin(), geometry.sizes.end(), int64_t{1}, std::multiplies<>());
}

at::Tensor with_dtype(const at::Tensor& base, c10::ScalarType dtype) {
  if (base.scalar_type() == dtype) return base;
  if (base.is_complex() && c10::toRealValueType(base.scalar_type()) == dtype) return at::view_as_real(base);
  if (c10::isComplexType(dtype) && c10::toRealValueType(dtype) == base.scalar_type()) return at::view_as_complex(base);
  return base.view(dtype);
}

// The plainest view function that gives the geometry: its backward is cheaper than as_strided's.
at::Tensor view_as(const at::Tensor& base, const Geometry& geometry) {
  if (same_geometry(base, geometry)) return base.alias();
  if (base.is_contiguous() && is_contiguous(geometry) && base.storage_offset() == geometry.offset &&
      base.numel() == numel(geometry))
    return base.view(geometry.sizes);
  c10::SmallVector<int64_t, 6> order;
  if (find_permutation(base, geometry, &order)) return base.permute(order);
  return base.as_strided(geometry.sizes, geometry.strides, geometry.offset);
}

}  // namespace

Geometry::Geometry(const ir::TensorType& type, std::span<const int64_t> symbols) : offset(type.offset.eval(symbols)) {
  for (const ir::Sym& size : type.sizes) sizes.push_back(size.eval(symbols));
  for (const ir::Sym& stride : type.strides) strides.push_back(stride.eval(symbols));
}

at::Tensor make_view(const at::Tensor& base, const OutputPlan& plan, std::span<const int64_t> symbols) {
  const Geometry geometry(plan.type, symbols);
  if (plan.detached) {
    at::Tensor detached = with_dtype(base.detach(), to_torch(plan.type.dtype));
    at::Tensor view = same_geometry(detached, geometry) ? detached : view_as(detached, geometry);
    if (plan.requires_grad) view.set_requires_grad(true);
    return view;
  }
  // Whether history is kept is what was seen in eager, for the region may switch grad mode inside. A view of a base
  // that requires a gradient claims to require one itself, even without history.
  const bool history = plan.requires_grad && !plan.no_history;
  c10::AutoGradMode mode(base.requires_grad() ? history : c10::GradMode::is_enabled());
  at::Tensor view = view_as(with_dtype(base, to_torch(plan.type.dtype)), geometry);
  if (plan.one_of_many)
    if (auto* meta = torch::autograd::impl::get_view_autograd_meta(view); meta && meta->has_bw_view())
      meta->set_creation_meta(torch::autograd::CreationMeta::MULTI_OUTPUT_NODE);
  return view;
}

at::Tensor as_inference(const at::Tensor& tensor, bool inference) {
  c10::InferenceMode mode(inference);
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  at::Tensor result =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(tensor.storage()), impl.key_set(), impl.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return result;
}

PyObject* wrap_output(at::Tensor&& tensor, const OutputPlan& plan) {
  PyObject* wrapped = THPVariable_Wrap(std::move(tensor));
  if (!wrapped || !plan.as_parameter) return wrapped;
  const Ref data = Ref::steal(wrapped);
  const Ref module = Ref::steal(PyImport_ImportModule("torch.nn"));
  if (!module) return nullptr;
  const Ref detached = Ref::steal(PyObject_CallMethod(data.get(), "detach", nullptr));
  if (!detached) return nullptr;
  return PyObject_CallMethod(module.get(), "Parameter", "OO", detached.get(), plan.requires_grad ? Py_True : Py_False);
}

}  // namespace graphlift::torch_layer
