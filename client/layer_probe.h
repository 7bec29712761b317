#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/command.h"
#include "client/model_session.h"
#include "graph/onnx_quantise/assignment.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::client {

/// A source model compiled once (graph::onnx_quantise::ProbeModel), run in f32 as any assignment
/// would have it. Not thread-safe.
class LayerProbe {
 public:
  /// Compiles it for the command's --target. `source` must outlive it. Errors of compiling.
  static absl::StatusOr<std::unique_ptr<LayerProbe>> Create(
      CommandContext& context, const graph::onnx_quantise::SourceModel& source,
      graph::onnx_quantise::Scheme scheme);

  /// The layer as it is in the source, or as its choice has it.
  void Keep(size_t layer);
  void Narrow(size_t layer, const graph::onnx_quantise::LayerChoice& choice);
  /// Only where a layer of the group is narrowed does it matter to the outputs.
  void SetGroup(size_t group, const graph::onnx_quantise::GroupChoice& choice);

  absl::Status Run(const NamedTensors& inputs);
  /// The model's own outputs, and a group's smoothed value, of the last run; in the probe's memory.
  NamedTensors Outputs() const;
  std::span<const float> Data(size_t group) const;
  const std::vector<int64_t>& DataShape(size_t group) const;
  /// Elements of a channel of it that lie side by side.
  size_t InnerElements(size_t group) const;

 private:
  LayerProbe(const graph::onnx_quantise::SourceModel& source, graph::onnx_quantise::Scheme scheme,
             ModelSession session);
  void Set(const std::string& input, std::span<const std::byte> bytes);
  size_t OutputOf(size_t group) const;

  const graph::onnx_quantise::SourceModel& source_;
  const graph::onnx_quantise::Scheme scheme_;
  ModelSession session_;
  std::map<std::string, size_t> inputs_, outputs_;
};

}  // namespace hone::client
