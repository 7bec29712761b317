#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "graph/onnx_prune/channel_sets.h"
#include "graph/onnx_prune/dead_channels.h"
#include "graph/onnx_quantise/assignment.h"
#include "tests/client/run_hone.h"
#include "tests/graph/onnx_model.h"

namespace hone::graph::onnx_prune {

/// A model of which half of each set is taken out.
class TakenOutTest : public ::testing::Test {
 protected:
  void ReadSource();
  std::vector<std::string> Names(const std::vector<size_t>& layers) const;
  /// The model without them gives what the one gives in which they are zero, to the last bit, and
  /// has weights of fewer columns.
  void ExpectHalfIsTakenOut();

  OnnxModel model_{17};
  uint64_t seed_ = 0;
  onnx_quantise::SourceModel source_;
  std::vector<ChannelSet> sets_;

 private:
  std::vector<ConstantPtr> Run(const onnx_quantise::Assignment& assignment,
                               const DroppedChannels& dropped) const;

  const client::testing::TemporaryFolder folder_;
  const std::string path_ = folder_.Path("m.onnx");
};

}  // namespace hone::graph::onnx_prune
