// Owns: primals: stand-ins for outside tensors and ints, and what is guarded about them.
// Must not: record calls (recorder.cpp) or finish a recording (finish.cpp).
#include <c10/core/InferenceMode.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/once.h"
#include "torch/autograd_node.h"
#include "torch/convert.h"
#include "torch/expectations.h"
#include "torch/functorch.h"
#include "torch/seeding.h"
#include "torch/sym_node.h"
#include "torch/tracer_impl.h"

namespace graphlift::torch_layer {
namespace {

PyObject* parameter_class() {
  static constinit Once<PyObject*> once;
  PyObject* found = once.get([] {
    Ref module = Ref::steal(PyImport_ImportModule("torch.nn.parameter"));
    return module ? PyObject_GetAttrString(module.get(), "Parameter") : nullptr;
  });
  return found;
}

// Why no stand-in can be made; empty when one can.
std::string unsupported(PyObject* object, const at::Tensor& real) {
  if (!is_plain_tensor_class(object)) return std::string("class ") + Py_TYPE(object)->tp_name;
  if (real.layout() != c10::kStrided) return std::string("layout ") + c10::str(real.layout());
  if (!real.is_cpu() && !real.is_cuda()) return "device " + real.device().str();
  if (real.is_quantized()) return "quantized";
  if (real.is_nested()) return "nested";
  if (real._fw_grad(0).defined()) return "with a forward-mode gradient";
  if (real.is_conj() || real.is_neg()) return "a lazy conjugate or negative";
  if (real.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return "with symbolic sizes";
  return "";
}

}  // namespace

namespace {

// By the type alone: isinstance() would ask an object's own __class__, which may be Python code.
bool derives(PyObject* object, PyObject* type) {
  return type && PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(type));
}

}  // namespace

bool is_tensor(PyObject* object) { return derives(object, THPVariableClass); }

bool is_stand_in(PyObject* object) {
  if (!is_tensor(object)) return false;
  if (!is_functorch_wrapper(THPVariable_Unpack(object))) return fake_storage(THPVariable_Unpack(object));
  return fake_storage(THPVariable_Unpack(innermost(object).get()));
}

bool lie_alike(PyObject* a, PyObject* b) {
  const FakeImpl *left = fake_impl(THPVariable_Unpack(a)), *right = fake_impl(THPVariable_Unpack(b));
  return left && right && left->slot() == right->slot();
}

bool is_sym_scalar(PyObject* object) {
  return derives(object, torch::get_symint_class().ptr()) || derives(object, torch::get_symfloat_class().ptr()) ||
         derives(object, torch::get_symbool_class().ptr());
}

bool is_plain_tensor_class(PyObject* object) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return type == THPVariableClass || type == parameter_class();
}

bool data_was_needed() {
  if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_RuntimeError)) return false;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  bool found = false;
  if (Ref text = Ref::steal(value ? PyObject_Str(value) : nullptr)) {
    const char* words = PyUnicode_AsUTF8(text.get());
    found = words && std::string_view(words).find(kNoData) != std::string_view::npos;
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return found;
}

std::unique_ptr<Tracer> Tracer::create(ir::ShapeEnv* shapes, OnBreak on_break, WhereNow where, Unobserved unobserved) {
  return std::make_unique<TracerImpl>(shapes, std::move(on_break), std::move(where), std::move(unobserved));
}

TracerImpl::TracerImpl(ir::ShapeEnv* shapes, OnBreak on_break, WhereNow where, Unobserved unobserved)
    : shapes_(shapes), recorder_(shapes, std::move(on_break), std::move(where), std::move(unobserved)) {}

TracerImpl::~TracerImpl() {
  while (recorder_.recording()) recorder_.stop();
}

void TracerImpl::start() {
  recorder_.start();
  if (calls_) calls_->push();
}

void TracerImpl::stop() {
  if (calls_) calls_->pop();
  recorder_.stop();
}

void TracerImpl::record_calls(ProgramCalls::Stack stack) {
  calls_ = std::make_unique<ProgramCalls>(*this, std::move(stack));
  recorder_.on_call = [this](const c10::OperatorHandle& handle) {
    if (calls_->inside_call() || !calls_->refused().empty()) return;
    calls_->refuse(handle.schema().name() + " runs outside of any function of torch's that the program calls");
  };
}

namespace {

// Dims from the innermost outwards.
std::vector<size_t> nesting(const at::Tensor& real) {
  std::vector<size_t> order(static_cast<size_t>(real.dim()));
  for (size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return real.stride(static_cast<int64_t>(a)) < real.stride(static_cast<int64_t>(b));
  });
  return order;
}

// Which of the wanted dims can vary: a dim of size 1 only with the stride that it would have if it were longer.
std::vector<bool> varying(const at::Tensor& real, std::span<const size_t> order, std::span<const int> wanted) {
  std::vector<bool> result(order.size());
  int64_t expected = 1;
  for (size_t d : order) {
    const int64_t size = real.size(static_cast<int64_t>(d)), stride = real.stride(static_cast<int64_t>(d));
    const bool named = std::find(wanted.begin(), wanted.end(), static_cast<int>(d)) != wanted.end();
    result[d] = named && (size > 1 || (size == 1 && stride == expected));
    if (size != 1) expected = stride * size;
  }
  return result;
}

}  // namespace

// Strides that are products of inner sizes stay so when those sizes are symbolic.
ir::TensorType TracerImpl::primal_type(const at::Tensor& real, std::span<const int> symbolic) {
  ir::TensorType type;
  type.dtype = from_torch(real.scalar_type());
  type.device = from_torch(real.device());
  type.requires_grad = real.requires_grad();
  type.offset = real.storage_offset();
  const std::vector<size_t> order = nesting(real);
  const std::vector<bool> varies = varying(real, order, symbolic);
  for (size_t d = 0; d < order.size(); ++d) {
    const int64_t size = real.size(static_cast<int64_t>(d));
    type.sizes.push_back(varies[d] ? shapes_->new_symbol(size, "s" + std::to_string(shapes_->symbol_count()), 1)
                                   : ir::Sym(size));
  }
  type.strides.resize(order.size());
  ir::Sym expected = 1;
  for (size_t d : order) {
    int64_t stride = real.stride(static_cast<int64_t>(d));
    type.strides[d] = stride == shapes_->hint(expected) ? expected : ir::Sym(stride);
    if (!type.sizes[d].same(1)) expected = type.strides[d] * type.sizes[d];
  }
  return type;
}

at::Tensor TracerImpl::make_stand_in(const at::Tensor& real, Primal* primal) {
  c10::InferenceMode as_made(real.is_inference());
  at::Tensor root = recorder_.new_tensor(primal->facts->tensor, {primal->input, 0});
  auto* storage = fake_storage(root);
  storage->primal = static_cast<int>(primals_.size());
  primal->slot = storage->base;
  if (!real.requires_grad()) return root;
  root.set_requires_grad(true);
  primal->root = root;
  primal->edge = torch::autograd::impl::gradient_edge(root);
  if (real.is_leaf()) return root;
  at::Tensor inner = make_fake_view(*shapes_, root, primal->slot);
  torch::autograd::edge_list edges{primal->edge};
  torch::autograd::set_history(inner, NodePtr(make_node<OutsideHistory>(std::move(edges))));
  return inner;
}

Ref TracerImpl::stand_in(PyObject* object, std::span<const int> symbolic) {
  return with_python_errors([&] { return make_primal(object, symbolic); });
}

Ref TracerImpl::make_primal(PyObject* object, std::span<const int> symbolic) {
  if (auto known = by_object_.find(object); known != by_object_.end()) return primals_[known->second].stand_in;
  const at::Tensor& real = THPVariable_Unpack(object);
  std::string reason = unsupported(object, real);
  if (!reason.empty()) recorder_.break_now("unsupported_tensor", reason);
  Primal primal;
  primal.object = Ref::borrow(object);
  ir::TensorType type = primal_type(real, symbolic);
  primal.input = recorder_.graph().add_input("x" + std::to_string(primals_.size()), type);
  primal.facts = make_facts(object, real, type);
  primal.seen = make_stand_in(real, &primal);
  if (primal.seen.key_set() != real.key_set()) recorder_.break_now("unsupported_tensor", c10::toString(real.key_set()));
  primal.stand_in = Ref::steal(THPVariable_Wrap(primal.seen));
  if (!primal.stand_in) return {};
  auto* type_object = reinterpret_cast<PyObject*>(Py_TYPE(object));
  if (type_object != THPVariableClass && PyObject_SetAttrString(primal.stand_in.get(), "__class__", type_object) < 0)
    return {};
  Ref result = primal.stand_in;
  by_object_[object] = static_cast<int>(primals_.size());
  by_stand_in_[primal.seen.unsafeGetTensorImpl()] = static_cast<int>(primals_.size());
  primals_.push_back(std::move(primal));
  return result;
}

std::optional<int> TracerImpl::primal_of(PyObject* stand_in) const {
  auto found = by_stand_in_.find(THPVariable_Unpack(stand_in).unsafeGetTensorImpl());
  if (found == by_stand_in_.end()) return std::nullopt;
  return found->second;
}

std::unique_ptr<guards::LeafCheck> TracerImpl::tensor_check(int primal) const {
  return make_tensor_check(primals_.at(static_cast<size_t>(primal)).facts);
}

Ref TracerImpl::sym_int(const ir::Sym& value) {
  return with_python_errors([&] { return Ref::steal(pybind11::cast(to_sym_int(*shapes_, value)).release().ptr()); });
}

std::optional<ir::Sym> TracerImpl::sym_of(PyObject* object) const {
  if (!torch::is_symint(object)) return std::nullopt;
  return to_sym(pybind11::handle(object).cast<c10::SymInt>());
}

// To the program's own calls a value that is kept is a clone.
void TracerImpl::note_clone(PyObject* of, PyObject* kept) {
  const Ref clone = Ref::steal(PyObject_GetAttrString(THPVariableClass, "clone"));
  const Ref args = Ref::steal(PyTuple_Pack(1, of));
  if (!clone || !args) throw python_error();
  calls_->add(clone.get(), args.get(), kept);
}

Ref TracerImpl::frozen(PyObject* stand_in) {
  return with_python_errors([&] {
    const at::Tensor& tensor = THPVariable_Unpack(stand_in);
    if (tensor.requires_grad() || tensor.is_inference()) return Ref();
    const ir::ValueRef value = recorder_.value_of(tensor);
    Ref kept = Ref::steal(THPVariable_Wrap(recorder_.new_tensor(recorder_.slot_of(tensor)->type, value)));
    if (calls_ && kept) note_clone(stand_in, kept.get());
    return kept;
  });
}

namespace {

const at::Generator& generator_in(PyObject* object) { return reinterpret_cast<THPGenerator*>(object)->cdata; }
bool is_on_cpu(const at::Generator& generator) { return generator.device().is_cpu(); }

}  // namespace

bool TracerImpl::end_inference() {
  if (inference_modes_.empty()) return false;
  inference_modes_.pop_back();
  return true;
}

bool TracerImpl::expect(PyObject* stand_in, bool truth, bool on_cpu) {
  const at::Tensor& tensor = THPVariable_Unpack(stand_in);
  const ir::TensorType& type = recorder_.slot_of(tensor)->type;
  const bool single = std::all_of(type.sizes.begin(), type.sizes.end(),
                                  [](const ir::Sym& size) { return size.is_constant() && size.constant() == 1; });
  if (on_cpu && !to_torch(type.device).is_cpu()) return false;
  if (single) recorder_.record_expectation(recorder_.value_of(tensor), truth);
  return single;
}

void TracerImpl::seed(PyObject* generator, int64_t seed) {
  if (calls_) calls_->refuse("a random generator is seeded");
  recorder_.record_seed(generator ? recorder_.generator_name(generator_in(generator)) : ir::Arg(), seed);
}

bool TracerImpl::make_generator(PyObject* object) {
  const at::Generator& generator = generator_in(object);
  if (!is_on_cpu(generator)) return false;
  if (calls_) calls_->refuse("a random generator is made");
  recorder_.note_generator(generator);
  recorder_.record_seed(recorder_.generator_name(generator), static_cast<int64_t>(c10::default_rng_seed_val));
  return true;
}

Ref TracerImpl::generator_state(PyObject* object) {
  return with_python_errors([&] {
    const at::Generator& generator = generator_in(object);
    if (!is_on_cpu(generator)) return Ref();
    if (calls_) calls_->refuse("the state of a random generator is read");
    return Ref::steal(THPVariable_Wrap(recorder_.record_state(generator)));
  });
}

bool TracerImpl::set_generator_state(PyObject* object, PyObject* state) {
  const Ref done = with_python_errors([&] {
    const at::Generator& generator = generator_in(object);
    const at::Tensor& given = THPVariable_Unpack(state);
    const bool fits = is_on_cpu(generator) && fake_storage(given) && given.is_cpu() && given.dtype() == c10::kByte &&
                      given.dim() == 1 && given.size(0) == state_size(generator);
    if (!fits) return Ref();
    if (calls_) calls_->refuse("the state of a random generator is set");
    recorder_.record_set_state(generator, given);
    return Ref::borrow(Py_None);
  });
  return static_cast<bool>(done);
}

}  // namespace graphlift::torch_layer
