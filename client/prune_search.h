#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/layer_search.h"
#include "graph/onnx_prune/channel_sets.h"
#include "graph/onnx_prune/prune_structure.h"

namespace hone::client {

/// What is asked of a pruned model.
struct PruneRequest {
  graph::onnx_prune::PruneStructure structure;
  double sparsity = 0;  ///< from 0 to below 1
  KeepRequest keep;
};

/// Decides which weights of each layer become zero. Not thread-safe.
class PruneSearch : public LayerSearch {
 public:
  /// What it refers to must outlive it. `sets`: of kChannel.
  PruneSearch(const graph::onnx_quantise::SourceModel& source, LayerProbe& probe,
              const CalibrationSet& data, PruneRequest request,
              const std::vector<graph::onnx_prune::ChannelSet>& sets,
              std::function<void(const std::string&)> tell);

  /// Looks at the data and prunes every layer that can be: the first step. InvalidArgument: a layer
  /// of `keep` that the model does not have, one that the structure does not divide or of which the
  /// sparsity leaves nothing, data that are not finite inside the model, no layer left.
  absl::Status Calibrate();

 private:
  absl::Status CheckLayers() const;
  absl::Status PruneChannels();
  std::string WhyNoChannels(const graph::onnx_quantise::Layer& layer) const;

  const PruneRequest request_;
  const std::vector<graph::onnx_prune::ChannelSet>& sets_;
};

}  // namespace hone::client
