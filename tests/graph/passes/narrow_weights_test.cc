#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "graph/op.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/quantised_layer.h"

namespace hone::graph {
namespace {

using ir::DType;
using testing::ChangesKeepingResults;
using testing::Dequantise;
using testing::Known;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

/// 96 terms by 200 columns; zero points of more than one element lie in blocks.
struct Layer {
  DType dtype = DType::kI8;
  int64_t first = -50;  ///< least weight
  int64_t step = 37;    ///< from weight to weight, modulo 101; 0: all the same
  int64_t block = 96;   ///< terms that have a scale
  bool zeros = false, transposed = false;
  int64_t rows = 3;
};

/// By known indices each scale is repeated, as blocks are imported.
ValueId Blocks(TestGraph& t, ValueId of_blocks, const Layer& layer) {
  std::vector<int64_t> indices;
  for (int64_t k = 0; k < 96; ++k) indices.push_back(k / layer.block);
  const ValueId at = t.graph.AddConstant(MakeInt64s({96}, indices));
  return t.Op("Gather", {of_blocks, at}, {{"axis", int64_t{layer.transposed ? 1 : 0}}});
}

/// The MatMulNarrow that the pass makes of it; results stay.
std::optional<Node> Narrowed(const Layer& layer) {
  TestGraph t;
  const Shape shape = layer.transposed ? Shape{200, 96} : Shape{96, 200};
  const int64_t groups = 96 / layer.block;
  const Shape of_blocks = layer.transposed ? Shape{200, groups} : Shape{groups, 200};
  ValueId scale = t.Positive(of_blocks);
  if (groups > 1) scale = Blocks(t, scale, layer);
  ValueId zero = kNoValue;
  if (layer.zeros) {
    zero = Known(t, layer.dtype, of_blocks, 3, groups > 1 ? 2 : 0);
    if (groups > 1) zero = Blocks(t, zero, layer);
  }
  const ValueId w =
      Dequantise(t, Known(t, layer.dtype, shape, layer.first, layer.step), zero, scale);
  t.Output(t.Op("MatMul", {t.Input({layer.rows, 96}), w},
                {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{layer.transposed}}}),
           "y");
  const int changes = ChangesKeepingResults(t, NarrowWeights);
  const auto node = std::ranges::find(t.graph.nodes, "MatMulNarrow", &Node::op);
  EXPECT_EQ(changes, node == t.graph.nodes.end() ? 0 : 1);
  if (node == t.graph.nodes.end()) return std::nullopt;
  return *node;
}

int64_t Int(const Node& node, const char* name) {
  return std::get<int64_t>(node.attributes.find(name)->second);
}

TEST(NarrowWeightsTest, StayBytesPerColumnAndInBlocks) {
  for (const bool transposed : {false, true}) {
    for (const int64_t block : {96, 32}) {
      for (const bool zeros : {false, true}) {
        const auto node = Narrowed({.block = block, .zeros = zeros, .transposed = transposed});
        ASSERT_TRUE(node);
        EXPECT_EQ(Int(*node, "bits"), 8);
        EXPECT_EQ(node->inputs.size(), zeros && block == 32 ? 4U : 3U);
      }
    }
  }
}

// Whatever type held them.
TEST(NarrowWeightsTest, OfFourBitsLieTwoInAByte) {
  const auto is_four_bits = [](const Layer& layer) {
    const auto node = Narrowed(layer);
    return node && Int(*node, "bits") == 4;
  };
  EXPECT_TRUE(is_four_bits({.first = -8, .step = 0, .block = 32}));
  EXPECT_TRUE(
      is_four_bits({.dtype = DType::kU8, .first = 15, .step = 0, .block = 32, .zeros = true}));
  EXPECT_FALSE(is_four_bits({.dtype = DType::kU8, .first = 0}));
}

TEST(NarrowWeightsTest, LeavesManyRowsAndShortBlocksAlone) {
  EXPECT_FALSE(Narrowed({.rows = 40}));
  EXPECT_FALSE(Narrowed({.block = 4}));
}

}  // namespace
}  // namespace hone::graph
