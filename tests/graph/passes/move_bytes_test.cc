#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "tests/graph/passes/quantised_layer.h"

namespace hone::graph {
namespace {

using ir::DType;
using testing::ChangesKeepingResults;
using testing::Dequantise;
using testing::FromBytes;
using testing::Known;
using testing::Quantise;
using testing::TestGraph;

std::string Operators(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) text += node.op + " ";
  return text;
}

TEST(MoveBytesTest, WhatIsOnlyMovedBetweenEqualScalesStaysBytes) {
  TestGraph t;
  const ValueId x = t.Input({2, 3, 4}, DType::kU8);
  const ValueId moved = t.Transpose(t.Reshape(FromBytes(t, x, 0.07, 131), {6, 4}), {1, 0});
  t.Output(Quantise(t, moved, 0.07, 131), "y");
  EXPECT_EQ(ChangesKeepingResults(t, MoveBytes), 1);
  EXPECT_EQ(Operators(t.graph), "Reshape Transpose ");
}

TEST(MoveBytesTest, TheGreatestOfAWindowIsThatOfItsBytes) {
  TestGraph t;
  const std::vector<int64_t> two = {2, 2};
  const ValueId x = FromBytes(t, t.Input({1, 3, 6, 6}, DType::kU8), 0.3, 7);
  const ValueId pooled = t.Op("Pool", {x},
                              {{"kind", std::string("max")},
                               {"kernel", std::vector<int64_t>{3, 3}},
                               {"strides", two},
                               {"dilations", std::vector<int64_t>{1, 1}},
                               {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                               {"layout", std::string("nchw")}});
  t.Output(Quantise(t, pooled, 0.3, 7), "y");
  EXPECT_EQ(ChangesKeepingResults(t, MoveBytes), 1);
  EXPECT_EQ(Operators(t.graph), "Pool ");
}

TEST(MoveBytesTest, OtherScalesAndZeroPointsAreComputed) {
  for (const auto& [scale, zero] : {std::pair(0.08, 131), std::pair(0.07, 130)}) {
    TestGraph t;
    const ValueId x = FromBytes(t, t.Input({2, 3}, DType::kU8), 0.07, 131);
    t.Output(Quantise(t, t.Transpose(x, {1, 0}), scale, zero), "y");
    EXPECT_EQ(ChangesKeepingResults(t, MoveBytes), 0);
  }
}

TEST(MoveBytesTest, RowsOfADequantisedTableAreGatheredAsBytes) {
  TestGraph t;
  const ValueId rows = t.Input({5}, DType::kU8);
  const ValueId table = Known(t, DType::kI8, {300, 2}, -50, 37);
  const ValueId real = Dequantise(t, table, Known(t, DType::kI8, {}, 3, 0), t.Scalar(0.02));
  t.Output(t.Op("Gather", {real, rows}, {{"axis", int64_t{0}}}), "y");
  EXPECT_EQ(ChangesKeepingResults(t, MoveBytes), 1);
  EXPECT_EQ(Operators(t.graph), "Gather Cast Binary Cast Binary ");
}

}  // namespace
}  // namespace hone::graph
