// Owns: tests of types, graphs, their text form and the verifier.
#include "ir/graph.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "ir/random_graph.h"

namespace graphlift::ir {
namespace {

TEST(Type, NamesAndCategories) {
  EXPECT_EQ(name(DType::float32), "float32");
  EXPECT_EQ(name(DType::bool_), "bool");
  EXPECT_EQ(dtype_from_name("bool"), DType::bool_);
  EXPECT_EQ(dtype_from_name("bool_"), std::nullopt);
  EXPECT_EQ(bytes(DType::complex128), 16);
  EXPECT_TRUE(is_floating(DType::bfloat16));
  EXPECT_FALSE(is_integral(DType::bool_));
  EXPECT_TRUE(is_integral(DType::uint16));
  EXPECT_TRUE(is_complex(DType::complex32));
  EXPECT_FALSE(is_integral(DType::undefined));
  EXPECT_EQ(short_name(DType::float8_e4m3fn), "f8_e4m3fn");
#define ROW(id, number, size, kind)                                   \
  EXPECT_EQ(static_cast<int>(DType::id), number);                     \
  EXPECT_EQ(dtype_from_short_name(short_name(DType::id)), DType::id); \
  EXPECT_EQ(dtype_from_name(name(DType::id)), DType::id);
  GRAPHLIFT_DTYPES(ROW)
#undef ROW
}

TEST(Type, Devices) {
  EXPECT_EQ(Device{}.str(), "cpu");
  EXPECT_EQ((Device{1, 0}).str(), "cuda:0");
  EXPECT_EQ(device_from_name("cuda:12"), (Device{1, 12}));
  EXPECT_EQ(device_from_name("cuda"), (Device{1, -1}));
  for (const char* wrong : {"cuda:", "cuda:x", "gpu", "cuda:999", ""})
    EXPECT_EQ(device_from_name(wrong), std::nullopt) << wrong;
}

TEST(Type, Text) {
  Sym s0 = Sym::symbol(0);
  TensorType type{DType::float32, {}, {s0, 8}, {8, 1}};
  EXPECT_EQ(type.str(), "f32[s0, 8]{8, 1} cpu");
  EXPECT_TRUE(type.numel().same(s0 * 8));
  type.offset = 16;
  type.device = {1, 0};
  type.requires_grad = true;
  EXPECT_EQ(type.str(), "f32[s0, 8]{8, 1}@(16) cuda:0 grad");
  EXPECT_EQ(parse_type(type.str()).str(), type.str());
  EXPECT_EQ(parse_type("bool[]{} cpu").str(), "bool[]{} cpu");
}

TEST(Type, ContiguousStrides) {
  Sym s0 = Sym::symbol(0);
  Dims strides = contiguous_strides({2, s0, 0, 4});
  EXPECT_TRUE(strides[0].same(s0 * 4));
  EXPECT_TRUE(strides[1].same(4));
  EXPECT_TRUE(strides[3].same(1));
}

TEST(Op, ComparedByName) {
  EXPECT_EQ(Op("aten::mm.default"), Op(std::string("aten::mm.") + "default"));
  EXPECT_FALSE(Op("aten::mm.default") == Op("aten::bmm.default"));
  EXPECT_EQ(Op().str(), "");
}

TEST(Graph, BuildsEditsAndClones) {
  Graph graph;
  TensorType type{DType::float32, {}, {4}, {1}};
  Node* x = graph.add_input("x", type);
  Node* a = graph.add_call(Op("aten::relu.default"), {ValueRef{x}}, {type}, {"m.py", 3, "forward"});
  Node* late = graph.add_input("tangent0", type);
  Node* b = graph.add_call(Op("aten::cat.default"), {ArgList{ValueRef{a}, ValueRef{late}}, Sym(0)}, {type});
  graph.outputs() = {ValueRef{b}, None{}};
  EXPECT_EQ(verify(graph), "");
  EXPECT_EQ(&*std::next(graph.nodes().begin()), late);
  Node* c = graph.insert_call(b, Op("aten::neg.default"), {ValueRef{a}}, {type});
  EXPECT_EQ(verify(graph), "");
  auto copy = graph.clone();
  graph.replace_uses({a}, {x});
  graph.erase(c);
  graph.erase(a);
  EXPECT_EQ(verify(graph), "");
  EXPECT_EQ(print(graph),
            "%0: f32[4]{1} cpu = input x\n"
            "%2: f32[4]{1} cpu = input tangent0\n"
            "%3: f32[4]{1} cpu = aten::cat.default([%0, %2], 0)\n"
            "return (%3, none)\n");
  EXPECT_EQ(verify(*copy), "");
  EXPECT_EQ(print(*copy),
            "%0: f32[4]{1} cpu = input x\n"
            "%2: f32[4]{1} cpu = input tangent0\n"
            "%1: f32[4]{1} cpu = aten::relu.default(%0)  # m.py:3 in forward\n"
            "%4: f32[4]{1} cpu = aten::neg.default(%1)\n"
            "%3: f32[4]{1} cpu = aten::cat.default([%1, %2], 0)\n"
            "return (%3, none)\n");
  EXPECT_EQ(copy->find(4)->op.str(), "aten::neg.default");
  EXPECT_EQ(copy->find(9), nullptr);
  EXPECT_EQ(copy->add_call(Op("aten::relu.default"), {}, {})->id, 5);
  EXPECT_THROW(graph.type({x, 1}), InternalError);
  EXPECT_THROW(graph.erase(copy->find(4)), InternalError);
}

TEST(Graph, TextHoldsEveryKindOfArgument) {
  std::string text =
      "%0: f32[s0, 8]{8, 1} cpu = input \"self weight\"\n"
      "%1: (f32[s0]{1} cpu, none) = my::op.out(%0, none, true, false, 1.0, -2.5e-07, inf, -inf, nan, 1, -s0 + 1, "
      "(s0//2)*3, "
      "\"a \\\"b\\\"\\n\\x01\", float32, bool, undefined, device(cuda:1), layout(strided), "
      "memory_format(channels_last), "
      "complex(1.0, -0.0), [], [[%0, none], 2]) backward recompute  # a dir/m in.py:7 in <lambda>\n"
      "%2: () = my::effect.default(%1.0)\n"
      "%3: none = sym aten::item.default(%0)  # x in y.py:1\n"
      "return (%1.0, min(s0, s1), -9223372036854775808)\n";
  auto graph = parse(text);
  EXPECT_EQ(print(*graph), text);
  EXPECT_EQ(verify(*graph), "");
  EXPECT_EQ(graph->find(3)->where.file, "x in y.py");
  auto copy = graph->clone();
  // All but the first and the last, which hold values of the two graphs.
  for (size_t i = 1; i + 1 < graph->find(1)->args.size(); ++i)
    EXPECT_TRUE(same(graph->find(1)->args[i], copy->find(1)->args[i])) << i;
}

TEST(Graph, SameTellsArgumentsApart) {
  EXPECT_FALSE(same(Arg(1.0), Arg(Sym(1))));
  EXPECT_FALSE(same(Arg(0.0), Arg(-0.0)));
  EXPECT_TRUE(same(Arg(std::numeric_limits<double>::quiet_NaN()), Arg(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_FALSE(same(Arg(true), Arg(false)));
  EXPECT_FALSE(same(Arg(ArgList{Sym(1)}), Arg(ArgList{Sym(1), Sym(1)})));
  EXPECT_TRUE(same(Arg(Sym::symbol(0) + 1), Arg(Sym(1) + Sym::symbol(0))));
}

TEST(Parse, ErrorsHaveAPlace) {
  struct {
    const char *text, *message;
  } rows[] = {
      {"%0: f32[2]{1} cpu = input x\n%0: f32[2]{1} cpu = input y\nreturn ()", "line 2, column 3: %0 is defined twice"},
      {"%0: q7[2]{1} cpu = input x\nreturn ()", "line 1, column 7: no dtype has the short name \"q7\""},
      {"%0: f32[2]{1} cpu = aten::relu.default(%7)\nreturn ()",
       "line 1, column 42: a value that no line before defines"},
      {"return (1) x", "line 1, column 12: text after the return line"},
      {"%0: f32[2]{1} cpu = input x y\nreturn ()", "line 1, column 29: expected the end of the line"},
      {"%0: f32[1//0]{1} cpu = input x\nreturn ()", "line 1, column 13: division by zero"},
      {"return (what)", "line 1, column 13: not an argument: \"what\""},
      {"return (\"open", "line 1, column 14: a string without an end"},
      {"", "line 1, column 1: expected \"return\""},
  };
  for (auto [text, message] : rows) {
    try {
      parse(text);
      ADD_FAILURE() << text;
    } catch (const ParseError& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
}

TEST(Verify, NamesWhatIsWrong) {
  TensorType type{DType::float32, {}, {4}, {1}};
  auto broken = [&](auto change) {
    Graph graph;
    Node* x = graph.add_input("x", type);
    Node* y = graph.add_call(Op("aten::relu.default"), {ValueRef{x}}, {type});
    graph.outputs() = {ValueRef{y}};
    EXPECT_EQ(verify(graph), "");
    change(graph, x, y);
    return verify(graph);
  };
  Graph other;
  Node* foreign = other.add_input("z", type);
  using N = Node*;
  EXPECT_EQ(broken([&](Graph&, N, N y) { y->args[0] = ValueRef{foreign}; }),
            "%1: uses a value that no node before it defines");
  EXPECT_EQ(broken([](Graph&, N, N y) { y->args[0] = ValueRef{y}; }),
            "%1: uses a value that no node before it defines");
  EXPECT_EQ(broken([](Graph&, N, N y) { y->args[0] = ArgList{ValueRef{}}; }), "%1: uses a null value");
  EXPECT_EQ(broken([](Graph&, N x, N y) { y->args[0] = ValueRef{x, 2}; }), "%1: uses %0.2, which its node has not");
  EXPECT_EQ(broken([](Graph&, N, N y) { y->outputs[0].reset(); }), "return: uses %1.0, which has no type");
  EXPECT_EQ(broken([](Graph&, N, N y) { y->id = 0; }), "%0: its id is taken");
  EXPECT_EQ(broken([](Graph&, N, N y) { y->op = Op(); }), "%1: a call without an operator");
  EXPECT_EQ(broken([](Graph&, N x, N) { x->outputs[0].reset(); }), "%0: an input has one type");
  EXPECT_EQ(broken([](Graph&, N, N y) { y->outputs[0]->strides = {}; }),
            "%1: a type whose sizes and strides differ in number");
  EXPECT_EQ(broken([](Graph&, N, N y) { y->outputs[0]->dtype = DType::undefined; }), "%1: a type without a dtype");
  EXPECT_EQ(broken([](Graph&, N, N y) { y->outputs[0]->sizes = {-1}; }), "%1: a negative size");
  EXPECT_EQ(broken([](Graph& graph, N, N y) { graph.erase(y); }),
            "return: uses a value that no node before it defines");
}

TEST(GraphFuzz, TextRoundTripsAndClonesAreEqual) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomGraph random(seed);
    auto graph =
        seed % 2 ? random.plain(random.pick(1, 4), random.pick(0, 30)) : random.joint(3, random.pick(1, 20), 2, 2);
    ASSERT_EQ(verify(*graph), "") << seed;
    std::string text = print(*graph);
    auto again = parse(text);
    ASSERT_EQ(verify(*again), "") << seed;
    ASSERT_EQ(print(*again), text) << seed;
    ASSERT_EQ(print(*graph->clone()), text) << seed;
    HashMachine one, two;
    auto inputs = input_hashes(graph->inputs().size());
    ASSERT_EQ(one.run(*graph, inputs), two.run(*again, inputs)) << seed;
  }
}

TEST(GraphFuzz, MovingAUseAheadIsNoticed) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    RandomGraph random(seed);
    auto graph = random.plain(2, 20);
    std::vector<Node*> nodes;
    for (Node& node : graph->nodes()) nodes.push_back(&node);
    Node* user = nodes[random.pick(2, static_cast<int>(nodes.size()) - 2)];
    user->args.push_back(ValueRef{nodes.back()});
    ASSERT_NE(verify(*graph), "") << seed;
  }
}

}  // namespace
}  // namespace graphlift::ir
