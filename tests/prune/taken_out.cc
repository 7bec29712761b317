#include "tests/prune/taken_out.h"

#include <algorithm>

#include "base/file.h"
#include "graph/onnx_prune/pruned_model.h"
#include "graph/onnx_prune/pruned_weights.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph::onnx_prune {

void TakenOutTest::ReadSource() {
  ASSERT_TRUE(WriteFileAtomically(path_, model_.Bytes()).ok());
  auto source = onnx_quantise::ReadSourceModel(path_, onnx_quantise::SourceUse::kPrune);
  ASSERT_TRUE(source.ok()) << source.status();
  source_ = *std::move(source);
}

std::vector<std::string> TakenOutTest::Names(const std::vector<size_t>& layers) const {
  std::vector<std::string> names;
  for (const size_t i : layers) names.push_back(source_.layers[i].name);
  return names;
}

void TakenOutTest::ExpectHalfIsTakenOut() {
  onnx_quantise::Assignment assignment;
  assignment.layers.resize(source_.layers.size());
  assignment.groups.resize(source_.groups.size());
  for (auto& layer : assignment.layers) layer.why_kept = "for now";
  const std::vector<std::vector<double>> norms(source_.layers.size());
  for (const ChannelSet& set : sets_) {
    const auto gone = LeastSalient(ChannelSaliencies(source_, set, norms), set.channels / 2);
    for (const size_t i : set.readers) {
      assignment.layers[i].why_kept.clear();
      assignment.layers[i].narrow.restored = WithoutChannels(source_.layers[i], gone);
    }
  }
  const DroppedChannels dropped = FindDeadChannels(source_, assignment, sets_);
  ASSERT_FALSE(dropped.empty());
  const std::vector<ConstantPtr> with = Run(assignment, {}), without = Run(assignment, dropped);
  ASSERT_EQ(with.size(), without.size());
  for (size_t k = 0; k < with.size(); ++k) {
    EXPECT_EQ(with[k]->type, without[k]->type);
    EXPECT_TRUE(std::ranges::equal(with[k]->bytes, without[k]->bytes));
  }
  for (const ChannelSet& set : sets_) {
    for (const size_t i : set.makers) {
      const onnx_quantise::Layer& layer = source_.layers[i];
      const ConstantPtr left = dropped.Apply(layer.node, 1, layer.weights_data);
      EXPECT_EQ(left->type.shape[layer.by_rows ? 0 : 1] * set.channels,
                layer.columns * (set.channels - set.channels / 2));
    }
  }
}

std::vector<ConstantPtr> TakenOutTest::Run(const onnx_quantise::Assignment& assignment,
                                           const DroppedChannels& dropped) const {
  const auto bytes = PrunedModel(source_, assignment, dropped);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  const auto graph = ImportBytes(*bytes);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? testing::RunNodes(*graph, testing::RandomInputs(*graph, 5))
                    : std::vector<ConstantPtr>();
}

}  // namespace hone::graph::onnx_prune
