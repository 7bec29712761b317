#include "client/written_model.h"

#include <memory>
#include <span>
#include <utility>

#include "base/status.h"
#include "client/log_trace_source.h"
#include "client/model_comparison.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "client/model_session.h"
#include "compiler/extract_kernels.h"
#include "ir/target.h"
#include "runtime/executable.h"

namespace hone::client {

absl::StatusOr<graph::Graph> ImportBytes(const Arguments& arguments, const std::string& bytes,
                                         const std::string& folder) {
  HONE_ASSIGN_OR_RETURN(graph::ImportOptions options, ReadImportOptions(arguments));
  options.folder = folder;
  return graph::ImportOnnx(std::as_bytes(std::span(bytes)), options);
}

absl::StatusOr<ModelScore> ScoreModel(CommandContext& context, graph::Graph graph,
                                         const ScoreTerms& terms) {
  std::string bytes;
  {
    HONE_ASSIGN_OR_RETURN(
        const compiler::CompiledModel model,
        CompileGraph(context.arguments, TraceChoice{}, std::move(graph), context.environment));
    auto package = runtime::SerializePackage(model.package);
    if (!package.ok()) return ToAbsl(package.status());
    bytes = *std::move(package);
  }
  auto executable = runtime::Executable::OpenMemory(std::as_bytes(std::span(bytes)), {});
  if (!executable.ok()) return ToAbsl(executable.status());
  HONE_ASSIGN_OR_RETURN(ModelSession session, ModelSession::Create(*std::move(executable), {}));
  ScoreSum sum;
  for (size_t run = 0; run < terms.reference->runs(); ++run) {
    session.SetInputs(terms.data->runs[run]);
    HONE_RETURN_IF_ERROR(session.Run());
    sum.Add(session.Outputs(), terms.reference->outputs(run));
  }
  ModelScore score = sum.Score();
  if (terms.labels == nullptr) return score;
  int64_t right = 0;
  for (size_t run = 0; run < terms.labelled->runs.size(); ++run) {
    session.SetInputs(terms.labelled->runs[run]);
    HONE_RETURN_IF_ERROR(session.Run());
    right += terms.labels->NumRight(session.Outputs()[0].second, run);
  }
  score.top1 = static_cast<double>(right) / static_cast<double>(terms.labels->num_rows());
  return score;
}

absl::StatusOr<std::vector<WholeTime>> TimeInTurns(CommandContext& context,
                                                   const TraceChoice& choice,
                                                   std::vector<graph::Graph> graphs,
                                                   const NamedTensors& inputs, double seconds) {
  const Arguments& arguments = context.arguments;
  const MonotonicClock& clock = *context.environment.clock;
  compiler::CompileOptions options;
  HONE_ASSIGN_OR_RETURN(options.target, ReadTarget(arguments));
  measure::BuilderClient builder(LocalBuilder(arguments, context.environment), clock);
  std::vector<std::unique_ptr<TimedModel>> models;
  std::vector<TimedModel*> turns;
  for (graph::Graph& graph : graphs) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<compiler::TraceSource> traces,
                          OpenTraces(arguments, choice));
    auto model = TimedModel::Create(std::move(graph), options, *traces, builder, inputs, clock);
    if (!model.ok()) return CompileError(model.status(), choice);
    models.push_back(*std::move(model));
    turns.push_back(models.back().get());
  }
  HONE_RETURN_IF_ERROR(
      RunInTurns(turns, seconds * static_cast<double>(turns.size()), nullptr, clock));
  std::vector<WholeTime> times;
  for (const TimedModel* model : turns) {
    const PairedRatio ratio = RatioOf(turns[0]->samples_ns(), model->samples_ns());
    times.push_back({model->MedianNs() * 1e-6, ratio.median, ratio.low, ratio.high});
  }
  return times;
}

absl::StatusOr<LoggedTime> TimeByLog(CommandContext& context, const TraceChoice& choice,
                                     graph::Graph graph) {
  const Arguments& arguments = context.arguments;
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadTarget(arguments));
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(text, &target, &why)) return absl::InvalidArgumentError(why);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<LogTraceSource> log,
                        OpenLogTraces(arguments, choice));
  measure::BuilderClient builder(LocalBuilder(arguments, context.environment),
                                 *context.environment.clock);
  const auto kernels = compiler::ExtractKernels(std::move(graph), target.text, builder);
  if (!kernels.ok()) return CompileError(kernels.status());
  log->BeginModel(*kernels);
  LoggedTime time;
  for (const compiler::ModelKernel& kernel : *kernels) {
    if (kernel.count == 0) continue;
    HONE_ASSIGN_OR_RETURN(const LogAnswer answer, log->Look(kernel.workload, kernel.hash, target));
    const bool own = answer.found.rung == "exact" && answer.median_ns > 0;
    if (own)
      time.ms += answer.median_ns * 1e-6 * kernel.count;
    else
      time.unknown += kernel.count;
  }
  return time;
}

}  // namespace hone::client
