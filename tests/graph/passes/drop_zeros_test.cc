#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::RandomInputs;
using testing::RunNodes;
using testing::TestGraph;
using testing::TestTarget;
using Shape = std::vector<int64_t>;

/// Seeded weights of [out, in, …] (or [in, out]) with zeros at some places of one dimension.
ValueId Zeroed(TestGraph& t, const Shape& shape, size_t axis, const Shape& places) {
  const ValueId seeded = t.Constant(shape);
  std::vector<double> values = t.graph.values[seeded].constant->AsDoubles();
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) / inner % shape[axis];
    if (std::ranges::find(places, at) != places.end()) values[i] = 0;
  }
  return t.graph.AddConstant(MakeConstant(ir::DType::kF32, shape, values));
}

ValueId Zeros(TestGraph& t, int64_t count) {
  return t.graph.AddConstant(MakeConstant(ir::DType::kF32, {count}, std::vector<double>(count)));
}

ValueId Product(TestGraph& t, ValueId a, ValueId b) {
  return t.Op("MatMul", {a, b}, {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}});
}

ValueId Convolution(TestGraph& t, ValueId x, ValueId w, ValueId bias) {
  return t.Op("Conv", {x, w, bias},
              {{"strides", Shape{1, 1}},
               {"dilations", Shape{1, 1}},
               {"pads", Shape{1, 1, 1, 1}},
               {"group", int64_t{1}},
               {"layout", std::string("nchw")}});
}

/// Runs the pass, after which the results are the same to the last bit; gives the changes.
int Dropped(TestGraph& t) {
  const auto inputs = RandomInputs(t.graph, 3);
  const auto before = RunNodes(t.graph, inputs);
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  const auto changes = DropZeros(t.graph, {evaluator, target});
  EXPECT_TRUE(changes.ok()) << changes.status();
  const auto after = RunNodes(t.graph, inputs);
  EXPECT_EQ(before.size(), after.size());
  for (size_t k = 0; k < before.size(); ++k)
    EXPECT_TRUE(std::ranges::equal(before[k]->bytes, after[k]->bytes)) << "output " << k;
  EXPECT_EQ(DropZeros(t.graph, {evaluator, target}).value_or(-1), 0);
  return changes.value_or(-1);
}

/// A hidden layer of 12: three of its rows are read by nobody, two have no weights.
TEST(DropZerosTest, HiddenRowsThatNobodyReadsOrWritesDisappear) {
  for (const bool biased : {false, true}) {
    TestGraph t;
    ValueId h = Product(t, t.Input({3, 8}), Zeroed(t, {8, 12}, 1, {0, 5}));
    if (biased) h = t.Binary("add", h, Zeroed(t, {12}, 0, {5}));
    const ValueId hidden = t.Op("Activation", {h}, {{"fn", std::string("gelu")}});
    t.Output(Product(t, hidden, Zeroed(t, {12, 6}, 0, {2, 7, 11})), "y");
    EXPECT_EQ(Dropped(t), 1);
    // With a bias the first one is a number that the second product reads.
    EXPECT_EQ(t.Shape(hidden), (Shape{3, biased ? 8 : 7}));
  }
}

TEST(DropZerosTest, ChannelsOfConvolutionsDisappear) {
  TestGraph t;
  const ValueId c = Convolution(t, t.Input({1, 3, 6, 6}), Zeroed(t, {10, 3, 3, 3}, 0, {4}),
                                Zeroed(t, {10}, 0, {4}));
  const ValueId r = t.Relu(t.Binary("mul", c, t.Constant({1, 10, 1, 1})));
  const ValueId y = Convolution(t, r, Zeroed(t, {5, 10, 3, 3}, 1, {9}), t.Constant({5}));
  t.Output(y, "y");
  EXPECT_EQ(Dropped(t), 1);
  EXPECT_EQ(t.Shape(r), (Shape{1, 8, 6, 6}));
}

TEST(DropZerosTest, LeavesWhatOthersReadAndWhatIsNoZeroAlone) {
  TestGraph t;
  const ValueId h = Product(t, t.Input({3, 8}), Zeroed(t, {8, 12}, 1, {0}));
  const ValueId e = t.Unary("exp", h);
  t.Output(Product(t, e, t.Constant({12, 6})), "exp(0) is one");
  const ValueId shared = Product(t, t.Input({3, 8}), Zeroed(t, {8, 12}, 1, {0}));
  t.Output(Product(t, shared, t.Constant({12, 6})), "y");
  t.Output(shared, "read by others");
  EXPECT_EQ(Dropped(t), 0);
}

TEST(DropZerosTest, ResidualSumsShrinkWithAllThatMakeAndReadThem) {
  TestGraph t;
  const ValueId x = t.Input({1, 3, 6, 6});
  const ValueId a = t.Relu(Convolution(t, x, Zeroed(t, {10, 3, 3, 3}, 0, {}), t.Constant({10})));
  const ValueId b = Convolution(t, a, Zeroed(t, {10, 10, 3, 3}, 1, {2, 7}), t.Constant({10}));
  const ValueId sum = t.Binary("add", b, a);
  const ValueId depthwise = t.Op("Conv", {sum, t.Constant({10, 1, 3, 3}), t.Constant({10})},
                                 {{"strides", Shape{1, 1}},
                                  {"dilations", Shape{1, 1}},
                                  {"pads", Shape{1, 1, 1, 1}},
                                  {"group", int64_t{10}},
                                  {"layout", std::string("nchw")}});
  t.Output(Convolution(t, depthwise, Zeroed(t, {5, 10, 3, 3}, 1, {2, 4, 7}), t.Constant({5})), "y");
  EXPECT_EQ(Dropped(t), 1);
  EXPECT_EQ(t.Shape(sum), (Shape{1, 8, 6, 6})) << "b still reads 4";
  EXPECT_EQ(t.Shape(depthwise), (Shape{1, 8, 6, 6}));
}

TEST(DropZerosTest, ZerosPassDepthwiseConvolutionsOnlyAsNumbersThatAreKnown) {
  for (const bool biased : {false, true}) {
    TestGraph t;
    const ValueId a = Convolution(t, t.Input({1, 3, 6, 6}), Zeroed(t, {10, 3, 3, 3}, 0, {4}),
                                  Zeroed(t, {10}, 0, {4}));
    const ValueId bias = biased ? t.Constant({10}) : Zeroed(t, {10}, 0, {4});
    const ValueId depthwise = t.Op("Conv", {t.Relu(a), t.Constant({10, 1, 3, 3}), bias},
                                   {{"strides", Shape{1, 1}},
                                    {"dilations", Shape{1, 1}},
                                    {"pads", Shape{1, 1, 1, 1}},
                                    {"group", int64_t{10}},
                                    {"layout", std::string("nchw")}});
    t.Output(Convolution(t, depthwise, t.Constant({5, 10, 3, 3}), t.Constant({5})), "y");
    EXPECT_EQ(Dropped(t), biased ? 0 : 1);
  }
}

TEST(DropZerosTest, WhatFedTheDroppedGoesToo) {
  TestGraph t;
  const ValueId a = Product(t, t.Input({3, 8}), t.Constant({8, 12}));
  // Only columns 1 and 3 of the next product read row 5 of the first; nobody reads these.
  std::vector<double> values(12 * 6, 0.25);
  for (const size_t column : {0, 2, 4, 5}) values[5 * 6 + column] = 0;
  const ValueId w = t.graph.AddConstant(MakeConstant(ir::DType::kF32, {12, 6}, values));
  const ValueId b = Product(t, t.Relu(a), w);
  t.Output(Product(t, t.Relu(b), Zeroed(t, {6, 4}, 0, {1, 3})), "y");
  EXPECT_EQ(Dropped(t), 2);
  EXPECT_EQ(t.Shape(b), (Shape{3, 4}));
  EXPECT_EQ(t.Shape(a), (Shape{3, 11}));
}

/// Four heads of three columns each: softmax(q · kᵀ + mask) · v, joined and projected.
struct Attention {
  ValueId query = kNoValue, joined = kNoValue;
};
Attention AddAttention(TestGraph& t, const Shape& unread, const Shape& unwritten) {
  const ValueId x = t.Input({2, 5, 7});
  const auto heads = [&](const Shape& zero, std::vector<int64_t> perm) {
    const ValueId made =
        t.Binary("add", Product(t, x, Zeroed(t, {7, 12}, 1, zero)), Zeroed(t, {12}, 0, zero));
    return t.Transpose(t.Reshape(made, {2, 5, 4, 3}), std::move(perm));
  };
  Attention attention;
  attention.query = heads({}, {0, 2, 1, 3});
  ValueId scores = Product(t, attention.query, heads({}, {0, 2, 3, 1}));
  scores = t.Binary("add", t.Binary("mul", scores, t.Scalar(0.5)), t.Input({2, 1, 1, 5}));
  const ValueId shares = t.Op("Softmax", {scores}, {{"axis", int64_t{-1}}, {"log", int64_t{0}}});
  const ValueId mixed = Product(t, shares, heads(unwritten, {0, 2, 1, 3}));
  attention.joined = t.Reshape(t.Transpose(mixed, {0, 2, 1, 3}), {2, 5, 12});
  t.Output(Product(t, attention.joined, Zeroed(t, {12, 7}, 0, unread)), "y");
  return attention;
}

TEST(DropZerosTest, HeadsThatAreNotReadOrCarryZeroDisappear) {
  TestGraph t;
  // The third head is not read; the values of the first are zero.
  const Attention attention = AddAttention(t, {6, 7, 8, 11}, {0, 1, 2, 4});
  EXPECT_EQ(Dropped(t), 1);
  EXPECT_EQ(t.Shape(attention.joined), (Shape{2, 5, 6}));
  EXPECT_EQ(t.Shape(attention.query), (Shape{2, 2, 5, 3}));
}

TEST(DropZerosTest, HeadsThatAreReadInPartStay) {
  TestGraph t;
  AddAttention(t, {0, 1, 5, 6}, {9, 10});
  EXPECT_EQ(Dropped(t), 0);
}

TEST(DropZerosTest, WhatMixesChannelsOrCountsThemStays) {
  TestGraph t;
  const ValueId x = t.Input({3, 8});
  const ValueId soft = t.Op("Softmax", {Product(t, x, t.Constant({8, 6}))},
                            {{"axis", int64_t{-1}}, {"log", int64_t{0}}});
  t.Output(Product(t, soft, Zeroed(t, {6, 4}, 0, {1})), "a softmax over the channels");
  const ValueId h = Product(t, x, t.Constant({8, 6}));
  const ValueId summed = t.Op(
      "Reduce", {h}, {{"fn", std::string("sum")}, {"axes", Shape{1}}, {"keepdims", int64_t{1}}});
  t.Output(t.Binary("add", Product(t, h, Zeroed(t, {6, 4}, 0, {1})), summed), "their sum");
  EXPECT_EQ(Dropped(t), 0);
}

/// What is joined to one tensor: places of the model's own channels among those of others.
TEST(DropZerosTest, ChannelsSideBySideDisappearEachWhereItIsMade) {
  TestGraph t;
  const ValueId x = t.Input({1, 3, 6, 6});
  const ValueId a = t.Relu(Convolution(t, x, Zeroed(t, {4, 3, 3, 3}, 0, {1}), Zeros(t, 4)));
  const ValueId b = t.Relu(Convolution(t, a, t.Constant({5, 4, 3, 3}), t.Constant({5})));
  const ValueId joined = t.Op("Concat", {x, a, b}, {{"axis", int64_t{1}}});
  // Channel 0 is the input's own; 4 is zero; 5 is still read by b, 8 and 11 by nobody.
  const ValueId y =
      Convolution(t, joined, Zeroed(t, {6, 12, 3, 3}, 1, {0, 5, 8, 11}), t.Constant({6}));
  t.Output(y, "y");
  EXPECT_EQ(Dropped(t), 1);
  EXPECT_EQ(t.Shape(a), (Shape{1, 3, 6, 6}));
  EXPECT_EQ(t.Shape(b), (Shape{1, 3, 6, 6}));
  EXPECT_EQ(t.Shape(joined), (Shape{1, 9, 6, 6}));
}

TEST(DropZerosTest, WhatIsJoinedTwiceShrinksOnce) {
  TestGraph t;
  const ValueId h = Product(t, t.Input({3, 8}), t.Constant({8, 6}));
  const ValueId joined = t.Op("Concat", {h, h}, {{"axis", int64_t{1}}});
  t.Output(Product(t, joined, Zeroed(t, {12, 4}, 0, {1, 4, 7})), "y");
  EXPECT_EQ(Dropped(t), 1);
  EXPECT_EQ(t.Shape(joined), (Shape{3, 10})) << "channel 4 is still read as 10";
}

TEST(DropZerosTest, SkipConnectionsOfADecoder) {
  TestGraph t;
  const ValueId x = t.Input({1, 3, 8, 8});
  const ValueId skip = t.Relu(Convolution(t, x, t.Constant({4, 3, 3, 3}), t.Constant({4})));
  const ValueId deep =
      t.Relu(Convolution(t, skip, Zeroed(t, {6, 4, 3, 3}, 1, {3}), t.Constant({6})));
  const ValueId up = t.Op("ConvTranspose", {deep, Zeroed(t, {6, 5, 1, 1}, 0, {2}), t.Constant({5})},
                          {{"strides", Shape{1, 1}},
                           {"dilations", Shape{1, 1}},
                           {"pads", Shape{0, 0, 0, 0}},
                           {"output_padding", Shape{0, 0}},
                           {"group", int64_t{1}},
                           {"layout", std::string("nchw")}});
  const ValueId joined = t.Op("Concat", {skip, up}, {{"axis", int64_t{1}}});
  t.Output(Convolution(t, joined, Zeroed(t, {2, 9, 3, 3}, 1, {0, 3, 6}), t.Constant({2})), "y");
  EXPECT_EQ(Dropped(t), 2);
  EXPECT_EQ(t.Shape(skip), (Shape{1, 3, 8, 8})) << "channel 0 is read on the way down";
  EXPECT_EQ(t.Shape(deep), (Shape{1, 5, 8, 8}));
  EXPECT_EQ(t.Shape(up), (Shape{1, 4, 8, 8}));
}

TEST(DropZerosTest, PaddedChannelsAreZeros) {
  TestGraph t;
  const ValueId a =
      t.Relu(Convolution(t, t.Input({1, 3, 6, 6}), Zeroed(t, {4, 3, 3, 3}, 0, {1}), Zeros(t, 4)));
  const ValueId padded = t.Op("Pad", {a},
                              {{"begin", Shape{0, 1, 1, 0}},
                               {"end", Shape{0, 2, 0, 1}},
                               {"mode", std::string("constant")}});
  const ValueId b = Convolution(t, padded, t.Constant({7, 7, 3, 3}), t.Constant({7}));
  // The shortcut carries zero in 0, 2, 5 and 6, but b adds to them.
  const ValueId sum = t.Binary("add", padded, b);
  t.Output(Convolution(t, sum, Zeroed(t, {2, 7, 3, 3}, 1, {2, 6}), t.Constant({2})), "y");
  EXPECT_EQ(Dropped(t), 1);
  EXPECT_EQ(t.Shape(a), (Shape{1, 3, 6, 6}));
  EXPECT_EQ(t.Shape(padded), (Shape{1, 5, 7, 7}));
  EXPECT_EQ(t.Shape(sum), (Shape{1, 5, 7, 7}));
}

/// Attention whose queries, keys and values one product makes: 4 heads of 3 columns, cut apart
/// first, or as a dimension of its own.
struct PackedAttention {
  ValueId packed = kNoValue, joined = kNoValue;
};
enum class Packing : uint8_t { kSlices, kDimension };
PackedAttention AddPackedAttention(TestGraph& t, Packing packing, const Shape& unread,
                                   const Shape& unwritten) {
  PackedAttention attention;
  const ValueId x = t.Input({2, 5, 7});
  attention.packed = t.Binary("add", Product(t, x, Zeroed(t, {7, 36}, 1, unwritten)),
                              Zeroed(t, {36}, 0, unwritten));
  std::vector<ValueId> parts;
  const ValueId apart =
      packing == Packing::kSlices
          ? kNoValue
          : t.Transpose(t.Reshape(attention.packed, {2, 5, 3, 4, 3}), {2, 0, 3, 1, 4});
  for (int64_t part = 0; part < 3; ++part) {
    if (packing == Packing::kSlices) {
      const ValueId cut = t.Op("Slice", {attention.packed},
                               {{"starts", Shape{0, 0, 12 * part}},
                                {"steps", Shape{1, 1, 1}},
                                {"sizes", Shape{2, 5, 12}}});
      parts.push_back(t.Transpose(t.Reshape(cut, {2, 5, 4, 3}), {0, 2, 1, 3}));
    } else {
      const ValueId at = t.graph.AddConstant(MakeInt64s({}, {part}));
      parts.push_back(t.Op("Gather", {apart, at}, {{"axis", int64_t{0}}}));
    }
  }
  const ValueId scores = Product(t, parts[0], t.Transpose(parts[1], {0, 1, 3, 2}));
  const ValueId shares = t.Op("Softmax", {scores}, {{"axis", int64_t{-1}}, {"log", int64_t{0}}});
  attention.joined = t.Reshape(t.Transpose(Product(t, shares, parts[2]), {0, 2, 1, 3}), {2, 5, 12});
  t.Output(Product(t, attention.joined, Zeroed(t, {12, 7}, 0, unread)), "y");
  return attention;
}

TEST(DropZerosTest, HeadsOfOneProductDisappear) {
  for (const Packing packing : {Packing::kSlices, Packing::kDimension}) {
    TestGraph t;
    // The third head is not read; the values of the first are zero, queries of the second too.
    const PackedAttention attention =
        AddPackedAttention(t, packing, {6, 7, 8, 11}, {3, 4, 5, 24, 25, 26});
    EXPECT_EQ(Dropped(t), 1);
    // A dimension of heads has one number for queries, keys and values: values alone are not seen.
    const int64_t left = packing == Packing::kSlices ? 2 : 3;
    EXPECT_EQ(t.Shape(attention.joined), (Shape{2, 5, 3 * left}));
    EXPECT_EQ(t.Shape(attention.packed), (Shape{2, 5, 9 * left}));
  }
}

TEST(DropZerosTest, HeadsOfWhichOneProductShowsMoreStay) {
  TestGraph t;
  const PackedAttention attention = AddPackedAttention(t, Packing::kSlices, {0, 1, 2}, {});
  t.Output(attention.packed, "read by others");
  EXPECT_EQ(Dropped(t), 0);
}

/// Networks with zeros at random in each way of joining and packing: the results stay to the bit.
TEST(DropZerosTest, RandomZerosLeaveTheResults) {
  int changes = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const auto some = [&](int64_t count, double share) {
      Shape places;
      for (int64_t k = 0; k < count; ++k)
        if (random.Uniform() < share) places.push_back(k);
      return places;
    };
    TestGraph t(seed);
    const double share = 0.6 * random.Uniform();
    const ValueId x = t.Input({1, 3, 5, 5});
    ValueId all = x;
    int64_t channels = 3;
    for (int layer = 0; layer < 4; ++layer) {
      const int64_t made = 2 + static_cast<int64_t>(random.Uniform() * 4);
      const Shape unwritten = some(made, share);
      const ValueId w = Zeroed(t, {made, channels, 3, 3}, 1, some(channels, share));
      const ValueId c = t.Binary("mul", Convolution(t, all, w, Zeroed(t, {made}, 0, unwritten)),
                                 Zeroed(t, {1, made, 1, 1}, 1, unwritten));
      const ValueId r = random.Uniform() < 0.5 ? t.Relu(c) : t.Unary("tanh", c);
      all = t.Op("Concat", random.Uniform() < 0.5 ? std::vector{all, r} : std::vector{r, all},
                 {{"axis", int64_t{1}}});
      channels += made;
      if (random.Uniform() < 0.3) {
        all = t.Op("Pad", {all},
                   {{"begin", Shape{0, 1, 0, 0}},
                    {"end", Shape{0, 1, 0, 0}},
                    {"mode", std::string("constant")}});
        channels += 2;
      }
    }
    t.Output(Convolution(t, all, Zeroed(t, {2, channels, 3, 3}, 1, some(channels, share)),
                         t.Constant({2})),
             "y");
    AddPackedAttention(t, seed % 2 == 0 ? Packing::kSlices : Packing::kDimension,
                       some(4, 0.5).empty() ? Shape{} : Shape{3, 4, 5}, some(36, 0.9));
    changes += Dropped(t);
  }
  EXPECT_GT(changes, 40);
}

}  // namespace
}  // namespace hone::graph
