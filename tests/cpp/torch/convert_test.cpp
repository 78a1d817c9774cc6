// Arguments survive the way from torch's dispatcher into a graph and back; the graph's numbers of dtypes are torch's.
#include "torch/convert.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace graphlift::torch_layer {
namespace {

ir::Arg no_tensor(const at::Tensor&) { throw InternalError("no tensor here"); }
ir::Sym plain(const c10::SymInt& number) { return ir::Sym(number.guard_int(__FILE__, __LINE__)); }
c10::IValue no_value(const ir::ValueRef&) { throw InternalError("no value here"); }

TEST(Convert, NumbersOfDtypesAreTorchs) {
#define ROW(name, number, bytes_, category_)                                                   \
  EXPECT_EQ(c10::elementSize(to_torch(ir::DType::name)), bytes_) << #name;                     \
  EXPECT_EQ(c10::isFloatingType(to_torch(ir::DType::name)), ir::is_floating(ir::DType::name)); \
  EXPECT_EQ(c10::isComplexType(to_torch(ir::DType::name)), ir::is_complex(ir::DType::name));
  GRAPHLIFT_DTYPES(ROW)
#undef ROW
  EXPECT_EQ(to_torch(ir::DType::bool_), c10::kBool);
  EXPECT_EQ(to_torch(ir::DType::bfloat16), c10::kBFloat16);
  EXPECT_EQ(to_torch(ir::DType::uint16), c10::kUInt16);
}

TEST(Convert, Devices) {
  EXPECT_EQ(from_torch(c10::Device("cuda:1")), (ir::Device{1, 1}));
  EXPECT_EQ(to_torch(ir::Device{1, 1}), c10::Device("cuda:1"));
  EXPECT_TRUE(from_torch(c10::Device("cpu")).is_cpu());
}

struct Sample {
  const char* op;
  std::vector<c10::IValue> values;  // one per parameter
};

// Every kind of parameter that aten has, by operators that take it; tensors apart.
const Sample kSamples[] = {
    {"aten::full.default",
     {c10::List<int64_t>({2, 3}), 1.5, int64_t(c10::kDouble), int64_t(c10::kStrided), c10::Device("cpu"), false}},
    {"aten::full.default",
     {c10::List<int64_t>(), int64_t(7), c10::IValue(), c10::IValue(), c10::IValue(), c10::IValue()}},
    {"aten::full.default",
     {c10::List<int64_t>({1}), c10::complex<double>(1, 2), int64_t(c10::kComplexFloat), c10::IValue(), c10::IValue(),
      true}},
    {"aten::scalar_tensor.default", {true, int64_t(c10::kBool), c10::IValue(), c10::IValue(), c10::IValue()}},
    {"aten::empty.memory_format",
     {c10::List<int64_t>({1, 2, 3, 4}), int64_t(c10::kFloat), c10::IValue(), c10::IValue(), c10::IValue(),
      int64_t(c10::MemoryFormat::ChannelsLast)}},
};

TEST(Convert, ArgumentsComeBackEqual) {
  for (const Sample& sample : kSamples) {
    const auto parameters = find_operator(ir::Op(sample.op)).schema().arguments();
    ASSERT_EQ(parameters.size(), sample.values.size()) << sample.op;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const ir::Arg arg = from_ivalue(sample.values[i], *parameters[i].real_type(), no_tensor, plain);
      EXPECT_TRUE(is_constant(arg));
      const c10::IValue back = to_ivalue(arg, parameters[i].type(), no_value, {});
      EXPECT_EQ(back, sample.values[i]) << sample.op << " " << parameters[i].name();
    }
  }
}

TEST(Convert, EnumerationsAreNotInts) {
  const auto& parameters = find_operator(ir::Op("aten::empty.memory_format")).schema().arguments();
  auto convert = [&](size_t i, int64_t number) {
    return from_ivalue(number, *parameters[i].real_type(), no_tensor, plain);
  };
  EXPECT_TRUE(std::holds_alternative<ir::DType>(convert(1, 6)));
  EXPECT_TRUE(std::holds_alternative<ir::Layout>(convert(2, 0)));
  EXPECT_TRUE(std::holds_alternative<ir::MemoryFormat>(convert(5, 2)));
}

TEST(Convert, NoneIsAnUndefinedTensorWhereOneIsAsked) {
  const auto& add = find_operator(ir::Op("aten::add.Tensor")).schema().arguments();
  const c10::IValue undefined = to_ivalue(ir::None{}, add[0].type(), no_value, {});
  ASSERT_TRUE(undefined.isTensor());
  EXPECT_FALSE(undefined.toTensor().defined());
  const auto& norm = find_operator(ir::Op("aten::native_layer_norm.default")).schema().arguments();
  EXPECT_TRUE(to_ivalue(ir::None{}, norm[2].type(), no_value, {}).isNone());
}

TEST(Convert, NumbersForTensorsAreWrappedNumbers) {
  const auto& add = find_operator(ir::Op("aten::add.Tensor")).schema().arguments();
  const at::Tensor number = to_ivalue(2.5, add[1].type(), no_value, {}).toTensor();
  EXPECT_TRUE(number.unsafeGetTensorImpl()->is_wrapped_number());
  EXPECT_EQ(number.scalar_type(), c10::kDouble);
  EXPECT_EQ(number.item<double>(), 2.5);
}

TEST(Convert, SymbolsAreEvaluated) {
  const auto& view = find_operator(ir::Op("aten::view.default")).schema().arguments();
  const ir::Arg sizes = ir::ArgList{ir::Sym::symbol(0) * 2, 3};
  EXPECT_FALSE(is_constant(sizes));
  const int64_t symbols[] = {5};
  EXPECT_EQ(to_ivalue(sizes, view[1].type(), no_value, symbols).toIntVector(), (std::vector<int64_t>{10, 3}));
}

TEST(Convert, OperatorNames) {
  for (const char* name : {"aten::add.Tensor", "aten::mm.default"})
    EXPECT_EQ(op_of(find_operator(ir::Op(name))).str(), name);
  EXPECT_THROW(find_operator(ir::Op("aten::no_such_operator.default")), InternalError);
}

}  // namespace
}  // namespace graphlift::torch_layer
