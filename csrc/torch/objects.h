// Owns: questions about Python objects of torch's that capture/ asks: kinds, marks, what is a singleton.
// Must not: need torch headers to include it, or know captures.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ref.h"
#include "guards/guard.h"
#include "ir/sym.h"

namespace graphlift::torch_layer {

void register_node_class();           // the class name of a region's autograd node in Python; once
void register_fetches();              // how guards fetch .grad and the attributes of tensors
bool is_singleton(PyObject* object);  // dtype, layout, memory format, qscheme
bool is_device(PyObject* object);     // torch.device
bool is_generator(PyObject* object);  // torch.Generator
bool is_torch_size(PyObject* object);
bool is_parameter(PyObject* tensor);
// torch.Tensor, nn.Parameter, nn.Buffer and their metaclasses: their attributes are taken as constant.
bool is_torch_owned(PyTypeObject* type);
// A function of torch's own Python code or of the standard library: known without a guard on how it was reached.
bool is_trusted_function(PyObject* function);
// An operator of torch's (a C function of torch's operator namespaces or a method of Tensor): runs on stand-ins.
bool is_tensor_function(PyObject* callable);
// torch.ops.<namespace>.<name>, or one overload of it.
bool is_operator_object(PyObject* object);
// The name of such an operator when a library composed it of code that would run while capturing; else empty.
std::string unknown_composition(PyObject* op);
bool is_known_base(PyTypeObject* type);  // C bases of torch's Python classes that may be made while capturing
// No lazy conjugate or negative, nor a wrapper of functorch's.
bool can_be_output(PyObject* tensor);
bool sizes_of(PyObject* tensor, std::vector<int64_t>* sizes);
// A torch.SymInt/SymFloat/SymBool of ours becomes its value, guarded. Null with a Python error.
Ref specialize(PyObject* symbolic);

// Binds the symbol to the address of the tensor's memory, so that guards can tell memories apart.
std::unique_ptr<guards::LeafCheck> memory_check(ir::SymbolId symbol);
int64_t memory_of(PyObject* tensor);

// torch.from_numpy of an array that may be written to; null without an error: of another object.
Ref tensor_on_array(PyObject* array);
inline constexpr const char* kOnArray = "from_numpy";  // the fetch of it, by which guards find it

int64_t thread_count();  // torch.get_num_threads()
int64_t anomaly_mode();  // torch.is_anomaly_enabled()
int64_t anomaly_checks_nan();

// mark_dynamic / mark_static as the user set them on a tensor.
struct Marks {
  std::vector<int> dynamic, fixed;
  bool is_dynamic(int dim) const;
  bool is_static(int dim) const;
};
Marks dynamic_marks(PyObject* tensor);

}  // namespace graphlift::torch_layer
