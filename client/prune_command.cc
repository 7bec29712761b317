#include <algorithm>
#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/status.h"
#include "client/command.h"
#include "client/json_text.h"
#include "client/model_loader.h"
#include "client/model_rewrite.h"
#include "client/prune_report.h"
#include "client/prune_search.h"
#include "client/remove_on_signal.h"
#include "graph/onnx_prune/channel_sets.h"
#include "graph/onnx_prune/dead_channels.h"
#include "graph/onnx_prune/head_sets.h"
#include "graph/onnx_prune/pruned_model.h"
#include "graph/onnx_prune/pruned_weights.h"

namespace hone::client {
namespace {

using graph::onnx_prune::DroppedChannels;
using graph::onnx_prune::PruneStructure;
using graph::onnx_quantise::Assignment;
using graph::onnx_quantise::Scheme;

absl::StatusOr<PruneRequest> ReadRequest(const Arguments& arguments) {
  PruneRequest request;
  const std::string structure = arguments.Text("structure");
  const auto parsed = graph::onnx_prune::ParsePruneStructure(structure);
  if (!parsed) {
    return UsageOf(fmt::format(
        "--structure {}: choose none, channel, head, block:MxN (as block:1x16) or N:M (as 2:4)",
        structure));
  }
  request.structure = *parsed;
  const bool of_group = parsed->kind == PruneStructure::Kind::kOfGroup;
  if (of_group)
    request.sparsity = 1 - static_cast<double>(parsed->kept) / static_cast<double>(parsed->group);
  if (!arguments.Given("sparsity")) {
    if (of_group) return request;
    return UsageOf("--sparsity S is needed: the share of each layer's weights that becomes zero");
  }
  const double sparsity = arguments.Number("sparsity");
  if (!(sparsity >= 0 && sparsity < 1)) {
    return UsageOf(fmt::format(
        "--sparsity {} is not from 0 to below 1: it is the share of weights that becomes zero",
        sparsity));
  }
  if (of_group && sparsity != request.sparsity) {
    return UsageOf(
        fmt::format("--structure {} makes {} of the weights zero, --sparsity {} does "
                    "not fit that: leave it out",
                    structure, request.sparsity, sparsity));
  }
  request.sparsity = sparsity;
  return request;
}

/// One call of the command: what its parts share.
class PruneRun : private ModelRewrite {
 public:
  explicit PruneRun(CommandContext& context) : ModelRewrite(context) {}

  absl::Status Run() {
    const RemoveOnSignal on_signal("prune", context_.json());
    HONE_ASSIGN_OR_RETURN(request_, ReadRequest(arguments_));
    HONE_ASSIGN_OR_RETURN(request_.keep, ReadKeep());
    HONE_RETURN_IF_ERROR(Read("pruned", graph::onnx_quantise::SourceUse::kPrune));
    // The probe of weights alone: no data are rounded.
    auto probe = LayerProbe::Create(context_, source_, Scheme::kInt8Weights);
    if (!probe.ok()) return CompileError(probe.status());
    HONE_RETURN_IF_ERROR(FindSets());
    PruneSearch search(source_, **probe, data_, request_, sets_,
                       [this](const std::string& text) { Tell(text); });
    HONE_RETURN_IF_ERROR(search.Calibrate());
    HONE_RETURN_IF_ERROR(SearchAndWrite(search, request_.keep, &report_));
    HONE_RETURN_IF_ERROR(FillReport(search));
    if (arguments_.Given("report"))
      HONE_RETURN_IF_ERROR(WriteFileAtomically(arguments_.Text("report"), PrunePage(report_)));
    context_.json_result = JsonText(ReportJson(report_));
    if (!context_.json()) context_.out << ReportText(report_);
    return absl::OkStatus();
  }

 private:
  absl::Status FindSets() {
    if (request_.structure.kind == PruneStructure::Kind::kChannel)
      sets_.sets = graph::onnx_prune::FindChannelSets(source_);
    if (request_.structure.kind != PruneStructure::Kind::kHead) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const graph::Graph graph, ImportModel(arguments_, path_));
    sets_ = graph::onnx_prune::FindHeadSets(source_, graph);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ModelOf(const Assignment& assignment) const override {
    return graph::onnx_prune::PrunedModel(source_, assignment, DroppedBy(assignment));
  }

  absl::Status FillReport(PruneSearch& search) {
    report_.source_is = "dense";
    report_.structure = arguments_.Text("structure");
    report_.asked = request_.sparsity;
    const DroppedChannels dropped = DroppedBy(search.assignment());
    double zeros = 0, all = 0;
    for (size_t i = 0; i < source_.layers.size(); ++i) {
      PrunedLayer line;
      static_cast<RewrittenLayer&>(line) = LineOf(search, i);
      line.updated = search.updates()[i].done;
      line.why_not_updated = search.updates()[i].why_not;
      line.sparsity = SparsityAt(search.assignment(), dropped, i);
      const auto weights = static_cast<double>(line.columns * line.terms);
      zeros += line.sparsity * weights;
      all += weights;
      report_.layers.push_back(std::move(line));
    }
    report_.sparsity = zeros / all;
    report_.before_update = search.before_update();
    report_.after_update = search.after_update();
    FillHeads(search);
    for (const graph::onnx_quantise::LeftOut& left : source_.left_out) {
      PrunedLayer line;
      line.name = left.name;
      line.op = left.op;
      line.why_kept = left.why;
      report_.layers.push_back(std::move(line));
    }
    std::vector<RewrittenLayer*> lines;
    for (PrunedLayer& line : report_.layers) lines.push_back(&line);
    return FillFront(search, lines, &report_);
  }

  void FillHeads(const PruneSearch& search) {
    if (request_.structure.kind != PruneStructure::Kind::kHead) return;
    for (size_t s = 0; s < sets_.sets.size(); ++s) {
      const std::vector<double>& saliencies = search.saliencies()[s];
      const size_t layer = sets_.sets[s].readers[0];
      const auto zeros = graph::onnx_prune::NumZeros(request_.sparsity, sets_.sets[s].channels);
      const std::vector<bool> gone = graph::onnx_prune::LeastSalient(saliencies, zeros);
      const double all = std::accumulate(saliencies.begin(), saliencies.end(), 0.0);
      for (size_t head = 0; head < saliencies.size(); ++head) {
        report_.heads.push_back({.layer = source_.layers[layer].name,
                                 .head = static_cast<int64_t>(head),
                                 .saliency = all > 0 ? saliencies[head] / all : 0,
                                 .gone = gone[head] && !search.assignment().layers[layer].kept()});
      }
    }
  }

  /// Channels disappear only where they were asked to.
  DroppedChannels DroppedBy(const Assignment& assignment) const {
    if (!request_.structure.takes_out()) return {};
    return FindDeadChannels(source_, assignment, sets_.sets);
  }

  /// The share of the source's weights of a layer that are zero in the written model or not in it.
  double SparsityAt(const Assignment& assignment, const DroppedChannels& dropped,
                    size_t layer) const {
    const graph::ConstantPtr left = dropped.Apply(
        source_.layers[layer].node, 1, graph::onnx_prune::WeightsAfter(source_, assignment, layer));
    const auto* values = reinterpret_cast<const float*>(left->bytes.data());
    const int64_t count = left->type.NumElements();
    const auto zeros = std::count(values, values + count, 0.0F);
    const int64_t all = source_.layers[layer].weights_data->type.NumElements();
    return 1 - static_cast<double>(count - zeros) / static_cast<double>(all);
  }

  PruneRequest request_;
  graph::onnx_prune::ChannelSets sets_;  ///< of what is taken out
  PruneReport report_;
};

}  // namespace

absl::Status RunPrune(CommandContext& context) { return PruneRun(context).Run(); }

}  // namespace hone::client
