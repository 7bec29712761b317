#include "compiler/compile_model.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/versions.h"
#include "compiler/kernel_build.h"
#include "compiler/kernel_evaluator.h"
#include "compiler/model_steps.h"
#include "compiler/plan_assembly.h"
#include "compiler/split_attention.h"
#include "compiler/thread_choice.h"
#include "ir/narrow_target.h"
#include "ir/target.h"

namespace hone::compiler {
namespace {

absl::StatusOr<ir::Target> ResolveTarget(const std::string& text) {
  ir::Target target;
  std::string error;
  if (!ir::ParseTarget(text, &target, &error)) return absl::InvalidArgumentError(error);
  return target;
}

std::vector<KernelReport> ReportKernels(const ModelSteps& model,
                                        const std::vector<FoundTrace>& traces,
                                        const BuiltKernels& built) {
  std::vector<KernelReport> reports;
  for (size_t k = 0; k < model.kernels.size(); ++k) {
    const ModelKernel& kernel = model.kernels[k];
    reports.push_back({.name = kernel.name,
                       .workload_hash = kernel.hash,
                       .workload = kernel.text,
                       .trace = built.kernels[k].trace,
                       .rung = traces[k].rung,
                       .why = traces[k].why,
                       .judged = traces[k].judged,
                       .noisy = traces[k].noisy,
                       .unused_prediction = traces[k].unused_prediction,
                       .count = kernel.count,
                       .operations = CountOperations(kernel.workload),
                       .cost = ir::CostOf(kernel.workload),
                       .lower_ns = built.kernels[k].lower_ns,
                       .codegen_ns = built.kernels[k].codegen_ns});
  }
  return reports;
}

std::vector<ExternReport> ReportExterns(const ModelSteps& model) {
  std::vector<ExternReport> reports;
  for (const ModelStep& step : model.steps) {
    if (step.kind != ir::PlanStepKind::kExtern) continue;
    ExternReport report{.name = step.extern_name, .count = 1};
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const graph::TensorType& type = model.graph.values[step.inputs[i]].type;
      report.name += (i == 0 ? " of " : ", ") + graph::ToText(type);
      report.bytes += type.Bytes();
    }
    for (const graph::ValueId output : step.outputs)
      report.bytes += model.graph.values[output].type.Bytes();
    const auto same = std::ranges::find_if(reports, [&](const ExternReport& each) {
      return each.name == report.name && each.bytes == report.bytes;
    });
    if (same == reports.end()) {
      reports.push_back(std::move(report));
    } else {
      ++same->count;
    }
  }
  return reports;
}

/// Branches run in turn unless somebody has measured that they gain. kAuto asks `traces`.
absl::StatusOr<KnownBranches> ChooseBranches(const ModelSteps& model, const ir::Target& target,
                                             BranchRun asked, TraceSource& traces) {
  if (target.threads < 2) return KnownBranches{BranchRun::kInTurn, ""};
  if (asked != BranchRun::kAuto) return KnownBranches{asked, "as --branches says"};
  return traces.FindBranchRun(model.kernels, target);
}

/// What was measured was so with all of the target's threads, unless fewer were as fast.
std::vector<int32_t> ThreadsOf(const std::vector<ModelKernel>& kernels,
                               const std::vector<FoundTrace>& traces, const ir::Target& target) {
  std::vector<int32_t> threads;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const FoundTrace& found = traces[k];
    threads.push_back(found.threads > 0     ? std::min(found.threads, target.threads)
                      : found.trace.empty() ? WorthThreads(ir::CostOf(kernels[k].workload), target)
                                            : target.threads);
  }
  return threads;
}

int CountAliases(const ModelSteps& model) {
  return static_cast<int>(std::ranges::count_if(
      model.aliases, [](const ValueAlias& alias) { return alias.of != graph::kNoValue; }));
}
/// Counts as a package stores them.
int64_t Stored(double count) { return static_cast<int64_t>(std::min(count, 0x1p60)); }
ir::ByUnit<int64_t> Stored(const ir::ByUnit<double>& counts) {
  ir::ByUnit<int64_t> stored;
  std::ranges::transform(counts, stored.begin(), [](double count) { return Stored(count); });
  return stored;
}

runtime::PackageInfo DescribePackage(const ir::Target& target, const CompileOptions& options,
                                     const std::vector<ModelKernel>& kernels,
                                     const std::vector<FoundTrace>& traces) {
  runtime::PackageInfo info;
  std::vector<const ir::Workload*> workloads;
  for (const ModelKernel& kernel : kernels) workloads.push_back(&kernel.workload);
  info.target = ir::NarrowedTo(target, workloads).text;
  info.device_class = options.device_class;
  info.program = kProgramVersion;
  info.accuracy = ir::AccuracyClassName(options.accuracy);
  for (size_t k = 0; k < traces.size(); ++k) {
    const ir::WorkloadCost cost = ir::CostOf(kernels[k].workload);
    info.kernels.push_back({.rung = traces[k].rung,
                            .record_id = traces[k].record_id,
                            .content_hash = traces[k].content_hash,
                            .name = kernels[k].name.substr(0, runtime::kMaxTextBytes),
                            .operations = Stored(cost.operations),
                            .bytes = Stored(cost.bytes)});
  }
  return info;
}

void ReportBranches(const KnownBranches& known, BranchRun asked, int possible_forks,
                    CompiledModel& model) {
  model.report.possible_forks = possible_forks;
  model.report.forks = static_cast<int>(model.package.plan.forks.size());
  if (possible_forks == 0) return;
  model.report.branches_judged = asked == BranchRun::kAuto && known.run != BranchRun::kAuto;
  model.report.branches_why = known.why.empty() ? "they were not measured" : known.why;
}

}  // namespace

absl::StatusOr<CompiledModel> CompileModel(graph::Graph graph, const CompileOptions& options,
                                           measure::BuilderClient& builder, TraceSource& traces) {
  CompiledModel model;
  HONE_ASSIGN_OR_RETURN(const ir::Target target, ResolveTarget(options.target));

  const ir::DType precision = graph.precision;

  // Graph: passes, then groups; each group is a Workload, equal ones one kernel.
  KernelEvaluator evaluator(builder);
  HONE_ASSIGN_OR_RETURN(model.report.passes, graph::RunPipeline(graph, evaluator, target));
  HONE_ASSIGN_OR_RETURN(ModelSteps steps, MakeSteps(std::move(graph), target, options.batch,
                                                    options.cascades, traces));

  // Kernels: a schedule for each, and code.
  HONE_ASSIGN_OR_RETURN(const KnownBranches branches,
                        ChooseBranches(steps, target, options.branches, traces));
  HONE_ASSIGN_OR_RETURN(const std::vector<FoundTrace> found,
                        LookUpTraces(steps.kernels, target, traces));
  HONE_ASSIGN_OR_RETURN(model.report.stale_attention,
                        CountStaleAttention(steps, target, found, traces));
  HONE_ASSIGN_OR_RETURN(BuiltKernels built, BuildKernels(steps.kernels, found, target, builder));

  // Memory, plan, and what the kernels' constants become.
  HONE_ASSIGN_OR_RETURN(AssembledPlan assembled,
                        AssemblePlan(steps, built,
                                     {.target = target,
                                      .threads = ThreadsOf(steps.kernels, found, target),
                                      .branches = branches.run,
                                      .scratch_folder = options.scratch_folder},
                                     evaluator));
  model.constants = std::move(assembled.constants);
  model.code = std::move(built.shared_object);

  // Package.
  model.package.info = DescribePackage(target, options, steps.kernels, found);
  model.package.info.precision = ir::ToString(precision);
  model.package.plan = std::move(assembled.plan);
  model.package.constants = model.constants.span();
  model.package.code = std::as_bytes(std::span(model.code));
  HONE_RETURN_IF_ERROR(ToAbsl(runtime::CheckPackage(model.package)));

  model.report.kernels = ReportKernels(steps, found, built);
  model.report.externs = ReportExterns(steps);
  model.report.num_aliases = CountAliases(steps);
  model.report.num_steps = static_cast<int>(steps.steps.size());
  model.report.images = steps.images;
  model.report.batch_why = steps.batch.why;
  model.report.batch_judged = steps.batch.judged;
  model.report.cascades = steps.cascades;
  ReportBranches(branches, options.branches, assembled.possible_forks, model);
  model.report.constant_bytes = static_cast<int64_t>(model.constants.bytes());
  model.report.code_bytes = static_cast<int64_t>(model.code.size());
  model.report.arena_bytes = assembled.memory.arena_bytes;
  model.report.sum_bytes = assembled.memory.sum_bytes;
  model.report.lower_bound_bytes = assembled.memory.lower_bound_bytes;
  return model;
}

}  // namespace hone::compiler
