#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "client/calibration_set.h"
#include "client/command.h"
#include "client/layer_search.h"
#include "client/model_inputs.h"
#include "client/rewrite_report.h"
#include "client/trace_choice.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::client {

/// One call of a command that changes layers of an ONNX model and says what that costs (quantize,
/// prune): reading, scoring, writing and timing, which are the same for each kind of change.
class ModelRewrite {
 protected:
  explicit ModelRewrite(CommandContext& context)
      : context_(context), arguments_(context.arguments), path_(arguments_.Text("MODEL")) {}
  virtual ~ModelRewrite() = default;
  ModelRewrite(const ModelRewrite&) = delete;
  ModelRewrite& operator=(const ModelRewrite&) = delete;

  /// The model with an assignment carried out, as ONNX.
  virtual absl::StatusOr<std::string> ModelOf(
      const graph::onnx_quantise::Assignment& assignment) const = 0;

  /// The request's keep, target-sqnr and max-drop. Usage errors.
  absl::StatusOr<KeepRequest> ReadKeep() const;
  /// Reads model and calibration data; where no output is named it is NAME.`ending` beside the
  /// model. Errors of reading, and where the output would be what the command reads.
  absl::Status Read(const std::string& ending, graph::onnx_quantise::SourceUse use);
  /// Measures a calibrated search's layers, meets the target where `keep` names one, compiles and
  /// writes the assignment; fills what each report has.
  absl::Status SearchAndWrite(LayerSearch& search, const KeepRequest& keep, RewriteReport* report);
  /// With --target-sqnr, --max-drop or --report: times models with no layer kept, some, and all of
  /// them, and the one that was written; and what each kept layer costs by the log.
  absl::Status FillFront(LayerSearch& search, const std::vector<RewrittenLayer*>& layers,
                         RewriteReport* report);
  /// What every report says of a layer.
  RewrittenLayer LineOf(const LayerSearch& search, size_t layer) const;

  void Tell(const std::string& text) const {
    if (!context_.json()) context_.err << text << '\n';
  }

  CommandContext& context_;
  const Arguments& arguments_;
  const std::string path_;
  std::string output_;
  graph::onnx_quantise::SourceModel source_;
  CalibrationSet data_;

 private:
  absl::Status SetLabels(LayerSearch& search);
  absl::Status Write(LayerSearch& search, RewriteReport* report);
  absl::StatusOr<graph::Graph> Import(const graph::onnx_quantise::Assignment& assignment,
                                      std::string* bytes) const;
  int64_t SourceBytes() const;
  absl::Status TimeFront(LayerSearch& search, RewriteReport* report);
  absl::Status AskLog(const LayerSearch& search, const std::vector<RewrittenLayer*>& layers,
                      RewriteReport* report);

  TraceChoice choice_;
  std::vector<std::string> files_;  ///< of the source's external data
  std::vector<InputSpec> specs_;
  CalibrationSet labelled_;
};

/// An error of how the command was called.
absl::Status UsageOf(const std::string& message);

}  // namespace hone::client
