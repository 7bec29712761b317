#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/layer_search.h"
#include "graph/onnx_prune/channel_sets.h"
#include "graph/onnx_prune/prune_structure.h"
#include "graph/onnx_prune/weight_update.h"

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
  /// What it refers to must outlive it. `sets`: of what is taken out (kChannel, kHead).
  PruneSearch(const graph::onnx_quantise::SourceModel& source, LayerProbe& probe,
              const CalibrationSet& data, PruneRequest request,
              const graph::onnx_prune::ChannelSets& sets,
              std::function<void(const std::string&)> tell);

  /// Looks at the data and prunes every layer that can be: the first step. InvalidArgument: a layer
  /// of `keep` that the model does not have, one that the structure does not divide or of which the
  /// sparsity leaves nothing, data that are not finite inside the model, no layer left.
  absl::Status Calibrate();

  /// Whether the weights that a layer is left with were updated; else why not (empty: nobody
  /// asked).
  struct Update {
    bool done = false;
    std::string why_not;
  };
  const std::vector<Update>& updates() const { return updates_; }
  /// Scores without and with all updates that were made, on the runs that decided; none where none
  /// was tried.
  const std::optional<ModelScore>& before_update() const { return before_update_; }
  const std::optional<ModelScore>& after_update() const { return after_update_; }

  /// By set, how much each of its channels matters; empty where a reader is kept.
  const std::vector<std::vector<double>>& saliencies() const { return saliencies_; }

 private:
  absl::Status CheckLayers() const;
  bool heads() const;
  void PruneWeights();
  /// By what layers read: the group, or a layer's windows of it, behind all groups.
  using Moments = std::map<size_t, graph::onnx_prune::InputMoments>;
  size_t MomentsOf(size_t layer) const;
  absl::StatusOr<Moments> MomentsFrom(std::span<const size_t> layers);
  absl::Status UpdateWeights();
  absl::Status PruneChannels();
  std::string WhyNoChannels(const graph::onnx_quantise::Layer& layer) const;

  const PruneRequest request_;
  const graph::onnx_prune::ChannelSets& sets_;
  std::vector<std::vector<double>> saliencies_;
  std::vector<Update> updates_;
  std::optional<ModelScore> before_update_, after_update_;
};

}  // namespace hone::client
