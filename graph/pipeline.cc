#include "graph/pipeline.h"

#include "fmt/format.h"

#include "base/status.h"
#include "graph/passes/passes.h"

namespace hone::graph {
namespace {

struct Pass {
  const char* name;
  absl::StatusOr<int> (*run)(Graph&, const PassContext&);
};

// Read from top to bottom.
constexpr Pass kPipeline[] = {
    {"remove_dead_code", RemoveDeadCode},
    {"canonicalise", Canonicalise},
    {"move_bytes", MoveBytes},
    {"remove_dead_code", RemoveDeadCode},
    {"tabulate_bytes", TabulateBytes},
    {"remove_dead_code", RemoveDeadCode},
    {"recognise_quantised", RecogniseQuantised},
    {"narrow_weights", NarrowWeights},
    {"fold_constants", FoldConstants},
    {"merge_common", MergeCommon},
    {"simplify_arithmetic", SimplifyArithmetic},
    {"recognise_rows", RecogniseRows},
    {"recognise_group_norm", RecogniseGroupNorm},
    {"recognise_gelu", RecogniseGelu},
    {"recognise_silu", RecogniseSilu},
    {"recognise_hard_sigmoid", RecogniseHardSigmoid},
    {"fold_pads", FoldPads},
    {"remove_dead_code", RemoveDeadCode},
    {"fold_batch_norm", FoldBatchNorm},
    {"drop_zeros", DropZeros},
    {"merge_siblings", MergeSiblings},
    {"choose_layout", ChooseLayout},
    // Transposes of the layout meet each other and constants.
    {"canonicalise", Canonicalise},
    {"hoist_slices", HoistSlices},
    {"canonicalise", Canonicalise},
    {"narrow_products", NarrowProducts},
    {"recognise_causal", RecogniseCausal},
    {"fold_constants", FoldConstants},
    {"merge_common", MergeCommon},
    {"remove_dead_code", RemoveDeadCode},
    {"recognise_attention", RecogniseAttention},
    {"express_externs", ExpressExterns},
    {"split_views", SplitViews},
};

}  // namespace

absl::StatusOr<std::vector<PassReport>> RunPipeline(Graph& graph, Evaluator& evaluator,
                                                    const ir::Target& target) {
  const PassContext context{evaluator, target};
  std::vector<PassReport> reports;
  for (const Pass& pass : kPipeline) {
    PassReport report{.pass = pass.name, .nodes_before = static_cast<int>(graph.nodes.size())};
    absl::StatusOr<int> changes = pass.run(graph, context);
    if (!changes.ok()) return Annotate(changes.status(), std::string("pass ") + pass.name);
    report.changes = *changes;
    report.nodes_after = static_cast<int>(graph.nodes.size());
    reports.push_back(std::move(report));
  }
  return reports;
}

std::string ToText(const std::vector<PassReport>& reports) {
  std::string text;
  for (const PassReport& report : reports) {
    text += fmt::format("{:<24} {:>5} changes {:>6} -> {} nodes\n", report.pass, report.changes,
                        report.nodes_before, report.nodes_after);
  }
  return text;
}

}  // namespace hone::graph
