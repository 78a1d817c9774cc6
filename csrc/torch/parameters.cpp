// Owns: see parameters.h.
#include "torch/parameters.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "torch/tracer_impl.h"

namespace graphlift::torch_layer {

// As Tensor._make_subclass does it, with the detach() recorded.
Ref as_parameter(PyObject* type, PyObject* stand_in, bool requires_grad) {
  return with_python_errors([&] {
    at::Tensor leaf;
    {
      const pybind11::gil_scoped_release release;
      leaf = THPVariable_Unpack(stand_in).detach();
    }
    leaf.unsafeGetTensorImpl()->set_allow_tensor_metadata_change(true);
    leaf.set_requires_grad(requires_grad);
    Ref made = Ref::steal(THPVariable_Wrap(std::move(leaf)));
    if (made && PyObject_SetAttrString(made.get(), "__class__", type) < 0) return Ref();
    return made;
  });
}

}  // namespace graphlift::torch_layer
