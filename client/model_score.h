#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "client/calibration_set.h"
#include "client/layer_probe.h"

namespace hone::client {

/// How near outputs are to those in f32.
struct ModelScore {
  double noise = 0;            ///< power of the difference by that of the output; mean of outputs
  std::optional<double> top1;  ///< share of rows whose greatest number is the labelled class
  /// Signal to noise, at most 180 dB.
  double Decibels() const;
};

/// Adds up what one run after the other says. Integers count where they differ.
class ScoreSum {
 public:
  /// `reference` in the order of `outputs`.
  void Add(const NamedTensors& outputs, const NamedTensors& reference);
  ModelScore Score() const;

 private:
  std::vector<double> noise_, signal_;
};

/// Outputs of a model in f32 on a set, against which others are held. Holds no reference to it.
class ScoreReference {
 public:
  /// Runs the probe, all of whose layers are kept. InvalidArgument where an output is not finite.
  static absl::StatusOr<ScoreReference> Create(LayerProbe& probe, const CalibrationSet& set);

  size_t runs() const { return outputs_.size(); }
  const NamedTensors& outputs(size_t run) const { return outputs_[run]; }

  /// The score of the probe as it is set, on at most `most` runs spread over the set.
  absl::StatusOr<ModelScore> Score(LayerProbe& probe, const CalibrationSet& set,
                                      size_t most) const;

 private:
  std::vector<NamedTensors> outputs_;
};

/// Right answers of a set: the class of each row of the first output, all runs behind each other.
class Top1Labels {
 public:
  /// InvalidArgument where there are not as many labels as rows, or one names no class.
  static absl::StatusOr<Top1Labels> Create(std::vector<int64_t> labels, const NamedTensors& outputs,
                                           size_t runs);

  /// The share of rows that are right. Errors of running.
  absl::StatusOr<double> Share(LayerProbe& probe, const CalibrationSet& set) const;
  /// How many rows of one run are right.
  int64_t NumRight(const graph::TensorData& output, size_t run) const;
  int64_t num_rows() const { return static_cast<int64_t>(labels_.size()); }

 private:
  std::vector<int64_t> labels_;
  int64_t classes_ = 1;
};

}  // namespace hone::client
