// Owns: see convert.h.
#include "torch/convert.h"

#include <ATen/ScalarOps.h>
#include <c10/core/InferenceMode.h>

#include <string>

#include "base/error.h"
#include "torch/seeding.h"

namespace graphlift::torch_layer {
namespace {

using c10::IValue;
using c10::TypeKind;

template <class... Case>
struct Overload : Case... {
  using Case::operator()...;
};
template <class... Case>
Overload(Case...) -> Overload<Case...>;

const c10::Type& without_optional(const c10::Type& type) {
  const c10::Type* bare = &type;
  while (bare->kind() == TypeKind::OptionalType) bare = bare->containedType(0).get();
  return *bare;
}

// A number where the schema wants a tensor takes part in type promotion as Python's numbers do.
IValue wrapped_number(const IValue& number) {
  c10::InferenceMode plain(false);
  at::Tensor tensor = c10::scalar_to_tensor(number.toScalar());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

class ToIValue {
 public:
  ToIValue(ValueReader value, std::span<const int64_t> symbols) : value_(value), symbols_(symbols) {}

  IValue convert(const ir::Arg& arg, const c10::Type& type) const {
    IValue value = plain(arg, type);
    return value.isScalar() && without_optional(type).kind() == TypeKind::TensorType ? wrapped_number(value) : value;
  }

 private:
  IValue plain(const ir::Arg& arg, const c10::Type& type) const {
    const c10::Type& bare = without_optional(type);
    return std::visit(
        Overload{
            [&](ir::None) { return type.kind() == TypeKind::TensorType ? IValue(at::Tensor()) : IValue(); },
            [&](const ir::ValueRef& value) { return value_(value); },
            [&](const ir::Sym& sym) {
              const int64_t number = sym.is_constant() ? sym.constant() : sym.eval(symbols_);
              return bare.kind() == TypeKind::FloatType ? IValue(static_cast<double>(number)) : IValue(number);
            },
            [&](double number) { return IValue(number); },
            [&](bool flag) { return IValue(flag); },
            [&](const std::complex<double>& number) { return IValue(c10::complex<double>(number)); },
            [&](const std::string& text) {
              return bare.kind() == TypeKind::GeneratorType ? IValue(named_generator(text)) : IValue(text);
            },
            [&](ir::DType dtype) { return IValue(static_cast<int64_t>(dtype)); },
            [&](ir::Device device) { return IValue(to_torch(device)); },
            [&](ir::Layout layout) { return IValue(static_cast<int64_t>(layout.number)); },
            [&](ir::MemoryFormat format) { return IValue(static_cast<int64_t>(format.number)); },
            [&](const ir::ArgList& list) { return convert_list(list, bare); },
        },
        static_cast<const ir::Arg::variant&>(arg));
  }

  template <class Element, class Read>
  IValue typed_list(const ir::ArgList& list, Read&& read) const {
    c10::List<Element> result;
    result.reserve(list.size());
    for (const ir::Arg& item : list) result.push_back(read(item));
    return IValue(std::move(result));
  }

  IValue convert_list(const ir::ArgList& list, const c10::Type& type) const {
    GL_CHECK(type.kind() == TypeKind::ListType, "a list for a parameter that is " + type.str());
    const c10::Type& element = *type.containedType(0);
    auto item = [&](const ir::Arg& arg) { return convert(arg, element); };
    switch (element.kind()) {
      case TypeKind::TensorType:
        return typed_list<at::Tensor>(list, [&](const ir::Arg& arg) { return item(arg).toTensor(); });
      case TypeKind::OptionalType:
        return typed_list<std::optional<at::Tensor>>(
            list, [&](const ir::Arg& arg) { return item(arg).toOptional<at::Tensor>(); });
      case TypeKind::IntType:
      case TypeKind::SymIntType:
        return typed_list<int64_t>(list, [&](const ir::Arg& arg) { return item(arg).toInt(); });
      case TypeKind::FloatType:
        return typed_list<double>(list, [&](const ir::Arg& arg) { return item(arg).toDouble(); });
      case TypeKind::BoolType:
        return typed_list<bool>(list, [&](const ir::Arg& arg) { return item(arg).toBool(); });
      case TypeKind::StringType:
        return typed_list<std::string>(list, [&](const ir::Arg& arg) { return item(arg).toStringRef(); });
      default: {
        c10::impl::GenericList result(type.containedType(0));
        for (const ir::Arg& arg : list) result.push_back(item(arg));
        return IValue(std::move(result));
      }
    }
  }

  ValueReader value_;
  std::span<const int64_t> symbols_;
};

ir::Arg number_from_int(int64_t number, TypeKind kind) {
  switch (kind) {
    case TypeKind::ScalarTypeType:
      return static_cast<ir::DType>(number);
    case TypeKind::LayoutType:
      return ir::Layout{static_cast<int8_t>(number)};
    case TypeKind::MemoryFormatType:
      return ir::MemoryFormat{static_cast<int8_t>(number)};
    case TypeKind::FloatType:
      return static_cast<double>(number);
    default:
      return ir::Sym(number);
  }
}

}  // namespace

IValue to_ivalue(const ir::Arg& arg, const c10::TypePtr& type, ValueReader value, std::span<const int64_t> symbols) {
  return ToIValue(value, symbols).convert(arg, *type);
}

bool is_constant(const ir::Arg& arg) {
  if (const ir::Sym* sym = arg.sym()) return sym->is_constant();
  if (const ir::ArgList* list = arg.list()) {
    for (const ir::Arg& item : *list)
      if (!is_constant(item)) return false;
    return true;
  }
  if (const auto* text = std::get_if<std::string>(&arg)) return !names_made_generator(*text);
  return arg.value() == nullptr;
}

ir::Arg from_ivalue(const IValue& value, const c10::Type& type, TensorWriter tensor, SymWriter sym) {
  const c10::Type& bare = without_optional(type);
  if (value.isNone()) return ir::None{};
  if (value.isTensor()) return value.toTensor().defined() ? tensor(value.toTensor()) : ir::Arg(ir::None{});
  if (value.isInt()) return number_from_int(value.toInt(), bare.kind());
  if (value.isSymInt()) return sym(value.toSymInt());
  if (value.isDouble()) return value.toDouble();
  if (value.isBool()) return value.toBool();
  if (value.isComplexDouble()) return std::complex<double>(value.toComplexDouble());
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return from_torch(value.toDevice());
  if (value.isSymFloat() && !value.toSymFloat().is_symbolic()) return value.toSymFloat().as_float_unchecked();
  if (value.isSymBool() && !value.toSymBool().is_heap_allocated()) return value.toSymBool().as_bool_unchecked();
  if (value.isList()) {
    const c10::Type& element = bare.kind() == TypeKind::ListType ? *bare.containedType(0) : bare;
    ir::ArgList result;
    for (const IValue& item : value.toListRef()) result.push_back(from_ivalue(item, element, tensor, sym));
    return result;
  }
  throw InternalError("a graph cannot hold an argument of type " + value.tagKind());
}

c10::OperatorHandle find_operator(ir::Op op) {
  std::string name(op.str());
  std::string overload;
  if (const size_t dot = name.rfind('.'); dot != std::string::npos) {
    overload = name.substr(dot + 1);
    name.resize(dot);
  }
  if (overload == "default") overload.clear();
  auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  GL_CHECK(handle.has_value(), "torch has no operator " + std::string(op.str()));
  return *handle;
}

ir::Op op_of(const c10::OperatorHandle& handle) {
  const c10::OperatorName& name = handle.operator_name();
  return ir::Op(name.name + "." + (name.overload_name.empty() ? "default" : name.overload_name));
}

c10::Device to_torch(ir::Device device) {
  return {static_cast<c10::DeviceType>(device.type), static_cast<c10::DeviceIndex>(device.index)};
}

ir::Device from_torch(c10::Device device) {
  return {static_cast<int8_t>(device.type()), static_cast<int8_t>(device.is_cpu() ? -1 : device.index())};
}

}  // namespace graphlift::torch_layer
