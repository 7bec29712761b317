#include "graph/pruned_constants.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/text.h"
#include "tests/compiler/graph_maker.h"

namespace hone::graph {
namespace {

using compiler::GraphMaker;
using ::testing::HasSubstr;
using ::testing::Not;

/// The text of a product by these weights of [64, 32].
std::string TextOf(const std::vector<double>& weights) {
  GraphMaker maker(5);
  const ValueId x = maker.Input("x", {4, 64});
  const ValueId w = maker.Constant(MakeConstant(ir::DType::kF32, {64, 32}, weights));
  Graph graph = maker.Finish({maker.Node("MatMul", {}, {x, w})});
  const auto group = BuildWorkload(graph, Group{.nodes = {0}});
  EXPECT_TRUE(group.ok()) << group.status();
  return group.ok() ? ir::ToText(group->workload) : "";
}

TEST(PrunedConstants, SayWhatTheyKeep) {
  // The first panel keeps every fourth term, the second one value of each.
  std::vector<double> weights(64 * 32, 0);
  for (size_t k = 0; k < 64; ++k) {
    for (size_t n = 0; n < 16; ++n) weights[k * 32 + n] = k % 4 == 0 ? 0.5 : 0;
    weights[k * 32 + 16 + k % 16] = -1;
  }
  EXPECT_THAT(TextOf(weights), HasSubstr("constant panels(1,16,[8,8,8,8,8,8,8,32],8)\n"));
}

TEST(PrunedConstants, DenseOnesSayNothing) {
  std::vector<double> weights(64 * 32, 1);
  EXPECT_THAT(TextOf(weights), HasSubstr("constant\n"));
  for (size_t i = 0; i < weights.size() / 4 - 1; ++i) weights[4 * i] = 0;
  EXPECT_THAT(TextOf(weights), Not(HasSubstr("panels"))) << "fewer than a quarter is zero";
  weights[weights.size() - 1] = weights[weights.size() - 2] = 0;
  EXPECT_THAT(TextOf(weights), HasSubstr("panels"));
}

}  // namespace
}  // namespace hone::graph
