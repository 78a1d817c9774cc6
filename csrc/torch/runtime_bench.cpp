// Owns: see runtime_bench.h.
#include "torch/runtime_bench.h"

#include <ATen/ATen.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <chrono>

namespace graphlift::torch_layer {
namespace {

template <class Body>
double nanoseconds(int times, Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) body();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / times;
}

}  // namespace

double nanoseconds_per_run(const Executable& executable, PyObject* inputs, size_t outputs, int times) {
  std::vector<PyObject*> arguments, results(outputs);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i) arguments.push_back(PyList_GET_ITEM(inputs, i));
  return nanoseconds(times, [&] {
    if (executable.run(arguments.data(), nullptr, results.data()) != Ran::Done) throw python_error();
    for (PyObject* result : results) Py_DECREF(result);
  });
}

double nanoseconds_of_add(PyObject* left, PyObject* right, int times, bool wrapped) {
  const at::Tensor& a = THPVariable_Unpack(left);
  const at::Tensor& b = THPVariable_Unpack(right);
  if (wrapped) return nanoseconds(times, [&] { Py_DECREF(THPVariable_Wrap(at::add(a, b))); });
  return nanoseconds(times, [&] { at::add(a, b); });
}

}  // namespace graphlift::torch_layer
