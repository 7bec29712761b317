#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/core/cpu.h"
#include "base/status.h"
#include "client/command.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "client/precision_error.h"
#include "client/roofline.h"
#include "ir/target.h"
#include "runtime/executable.h"
#include "runtime/package.h"
#include "runtime/phase_order.h"
#include "runtime/region.h"

namespace hone::client {
namespace {

using Json = nlohmann::ordered_json;

double Megabytes(int64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

Json ValuesJson(const std::vector<ir::PlanValue>& values) {
  auto list = Json::array();
  for (const ir::PlanValue& value : values) {
    list.push_back({{"name", value.name},
                    {"dtype", std::string(ir::ToString(value.dtype))},
                    {"shape", value.shape}});
  }
  return list;
}

std::string BarriersText(const ir::Plan& plan) {
  const runtime::BarrierCount count = runtime::CountBarriers(plan);
  std::string text = fmt::format("barriers between threads: {} in each run, {} left out\n",
                                 count.barriers, count.left_out);
  if (!plan.forks.empty())
    text += fmt::format("branches: {} forks run side by side\n", plan.forks.size());
  return text;
}

Json BarriersJson(const ir::Plan& plan) {
  const runtime::BarrierCount count = runtime::CountBarriers(plan);
  return {{"count", count.barriers}, {"left_out", count.left_out}, {"forks", plan.forks.size()}};
}

std::string ValuesText(std::string_view title, const std::vector<ir::PlanValue>& values) {
  std::string text = fmt::format("{}\n", title);
  for (const ir::PlanValue& value : values) {
    text += fmt::format("  {}: {}\n", value.name,
                        graph::ToText(graph::TensorType{value.dtype, value.shape}));
  }
  return text;
}

/// A kernel with what the machine allows.
struct InspectedKernel {
  const compiler::KernelReport* report = nullptr;
  double bound_us = 0;
};

std::vector<InspectedKernel> InspectKernels(const compiler::CompileReport& report,
                                            const Roofline* roofline) {
  std::vector<InspectedKernel> kernels;
  for (const compiler::KernelReport& each : report.kernels) {
    InspectedKernel kernel = {.report = &each};
    if (roofline != nullptr) kernel.bound_us = roofline->BoundNs(each.cost) * 1e-3;
    kernels.push_back(kernel);
  }
  return kernels;
}

/// A routine of the runtime: no arithmetic that counts, but bytes that it moves.
struct InspectedExtern {
  const compiler::ExternReport* report = nullptr;
  double bound_us = 0;
};

std::vector<InspectedExtern> InspectExterns(const compiler::CompileReport& report,
                                            const Roofline* roofline) {
  std::vector<InspectedExtern> externs;
  for (const compiler::ExternReport& each : report.externs) {
    InspectedExtern inspected = {.report = &each};
    const ir::WorkloadCost cost = {.bytes = static_cast<double>(each.bytes)};
    if (roofline != nullptr) inspected.bound_us = roofline->BoundNs(cost) * 1e-3;
    externs.push_back(inspected);
  }
  return externs;
}

/// How many kernels a summary names.
constexpr size_t kFewKernels = 10;

/// Those of a whole model that do most, in the model's order.
std::vector<const InspectedKernel*> ShownKernels(const std::vector<InspectedKernel>& kernels,
                                                 size_t most) {
  std::vector<const InspectedKernel*> shown;
  for (const InspectedKernel& kernel : kernels) shown.push_back(&kernel);
  if (shown.size() <= most) return shown;
  const auto work = [](const InspectedKernel* kernel) {
    return kernel->report->cost.flop() * kernel->report->count;
  };
  std::ranges::stable_sort(shown, std::greater<>(), work);
  shown.resize(most);
  std::ranges::sort(shown);  // they lie in one vector
  return shown;
}

/// Each pass, or how many there were.
std::string PassesText(const std::vector<graph::PassReport>& passes, bool verbose) {
  if (verbose) return "passes\n" + graph::ToText(passes);
  const auto changed =
      std::ranges::count_if(passes, [](const graph::PassReport& pass) { return pass.changes > 0; });
  return fmt::format("passes: {} of {} changed the graph (-v lists them)\n", changed,
                     passes.size());
}

std::string KernelsText(const std::vector<InspectedKernel>& kernels,
                        const std::vector<InspectedExtern>& externs, const Roofline* roofline,
                        bool verbose) {
  const bool bounded = roofline != nullptr;
  std::string text = fmt::format(
      "kernels ({}) and externs ({}), once each\n  {:<32} {:>5} {:>11} {:>9} {:>9}  {:<8} {}\n",
      kernels.size(), externs.size(), "workload", "count", "MFLOP", "MB", "bound us", "rung",
      "operators");
  const auto bound = [&](double us) { return bounded ? fmt::format("{:.1f}", us) : "-"; };
  double flop = 0, bytes = 0, bound_us = 0;
  const std::vector<const InspectedKernel*> shown =
      ShownKernels(kernels, verbose ? kernels.size() : kFewKernels);
  for (const InspectedKernel* kernel : shown) {
    const compiler::KernelReport& report = *kernel->report;
    text += fmt::format("  {:<32} {:>5} {:>11.3f} {:>9.3f} {:>9}  {:<8} {}\n", report.workload_hash,
                        report.count, report.cost.flop() * 1e-6, report.cost.bytes * 1e-6,
                        bound(kernel->bound_us), report.rung, report.name);
  }
  if (shown.size() < kernels.size()) {
    text += fmt::format("  and {} smaller kernels (-v lists all)\n", kernels.size() - shown.size());
  }
  for (const InspectedKernel& kernel : kernels) {
    const compiler::KernelReport& report = *kernel.report;
    flop += report.cost.flop() * report.count;
    bytes += report.cost.bytes * report.count;
    bound_us += kernel.bound_us * report.count;
  }
  for (const InspectedExtern& each : externs) {
    const compiler::ExternReport& report = *each.report;
    text += fmt::format("  {:<32} {:>5} {:>11} {:>9.3f} {:>9}  {:<8} {}\n",
                        "(routine of the runtime)", report.count, "-", Megabytes(report.bytes),
                        bound(each.bound_us), "extern", report.name);
    bytes += static_cast<double>(report.bytes) * report.count;
    bound_us += each.bound_us * report.count;
  }
  text += fmt::format("  whole model: {:.4g} GFLOP, {:.4g} MB moved", flop * 1e-9, bytes * 1e-6);
  if (bounded) {
    text += fmt::format(", at least {:.1f} us {}", bound_us,
                        roofline->nominal ? "by the nominal rates of the target's card (not probed)"
                                          : "on this machine");
  }
  return text + '\n';
}

Json KernelsJson(const std::vector<InspectedKernel>& kernels, bool bounded) {
  auto list = Json::array();
  for (const InspectedKernel& kernel : kernels) {
    const compiler::KernelReport& report = *kernel.report;
    Json object = {{"name", report.name},        {"workload", report.workload_hash},
                   {"count", report.count},      {"flop", report.cost.flop()},
                   {"bytes", report.cost.bytes}, {"rung", report.rung}};
    if (bounded) object["bound_us"] = kernel.bound_us;
    list.push_back(std::move(object));
  }
  return list;
}

Json ExternsJson(const std::vector<InspectedExtern>& externs, bool bounded) {
  auto list = Json::array();
  for (const InspectedExtern& each : externs) {
    Json object = {{"name", each.report->name},
                   {"count", each.report->count},
                   {"bytes", each.report->bytes},
                   {"rung", "extern"}};
    if (bounded) object["bound_us"] = each.bound_us;
    list.push_back(std::move(object));
  }
  return list;
}

Json PassesJson(const std::vector<graph::PassReport>& passes) {
  auto list = Json::array();
  for (const graph::PassReport& pass : passes) {
    list.push_back({{"pass", pass.pass},
                    {"changes", pass.changes},
                    {"nodes_before", pass.nodes_before},
                    {"nodes_after", pass.nodes_after}});
  }
  return list;
}

/// The texts of the kernels whose hash starts with `prefix`.
absl::StatusOr<std::string> KernelTexts(const compiler::CompileReport& report,
                                        const std::string& prefix) {
  std::string text;
  for (const compiler::KernelReport& kernel : report.kernels) {
    if (!kernel.workload_hash.starts_with(prefix)) continue;
    text += fmt::format("kernel {} ({}, {})\n{}\ntrace\n{}\n", kernel.workload_hash, kernel.name,
                        kernel.rung, kernel.workload, kernel.trace);
  }
  if (!text.empty()) return text;
  return WithExitCode(
      absl::NotFoundError(fmt::format(
          "--kernel: the model has no kernel \"{}\"; `hone inspect` lists them", prefix)),
      ExitCode::kUsage);
}

absl::Status InspectModel(CommandContext& context, const std::string& path) {
  const Arguments& arguments = context.arguments;
  const MonotonicClock& clock = *context.environment.clock;
  HONE_ASSIGN_OR_RETURN(const std::string target_text, ReadTarget(arguments));
  HONE_ASSIGN_OR_RETURN(const TraceChoice traces, ChooseTraces(arguments, context.environment));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, path));
  HONE_ASSIGN_OR_RETURN(const compiler::CompiledModel model,
                        CompileGraph(arguments, traces, std::move(graph), context.environment));
  if (!context.json()) context.err << ChosenLogText(traces, model.report);
  const compiler::CompileReport& report = model.report;
  if (arguments.Given("kernel")) {
    HONE_ASSIGN_OR_RETURN(const std::string texts, KernelTexts(report, arguments.Text("kernel")));
    if (context.json()) {
      context.json_result = JsonText(Json({{"text", texts}}));
    } else {
      context.out << texts;
    }
    return absl::OkStatus();
  }
  ir::Target target;
  std::string error;
  if (!ir::ParseTarget(target_text, &target, &error)) return absl::InternalError(error);
  HONE_ASSIGN_OR_RETURN(const std::optional<Roofline> found, FindRoofline(target, clock));
  const Roofline* const roofline = found ? &*found : nullptr;
  const bool bounded = roofline != nullptr;
  const std::vector<InspectedKernel> kernels = InspectKernels(report, roofline);
  const std::vector<InspectedExtern> externs = InspectExterns(report, roofline);
  const ir::Plan& plan = model.package.plan;
  if (context.json()) {
    const Json object = {{"model", ModelName(path)},
                         {"target", target_text},
                         {"inputs", ValuesJson(plan.inputs)},
                         {"outputs", ValuesJson(plan.outputs)},
                         {"passes", PassesJson(report.passes)},
                         {"kernels", KernelsJson(kernels, bounded)},
                         {"externs", ExternsJson(externs, bounded)},
                         {"bounds", !bounded         ? "none"
                                    : found->nominal ? "nominal"
                                                     : "probed"},
                         {"steps", report.num_steps},
                         {"aliases", report.num_aliases},
                         {"barriers", BarriersJson(plan)},
                         {"memory",
                          {{"peak_bytes", report.arena_bytes},
                           {"sum_bytes", report.sum_bytes},
                           {"lower_bound_bytes", report.lower_bound_bytes}}},
                         {"constant_bytes", report.constant_bytes},
                         {"code_bytes", report.code_bytes}};
    context.json_result = JsonText(object);
    return absl::OkStatus();
  }
  context.out
      << fmt::format("{} for {}\n", ModelName(path), target_text)
      << ValuesText("inputs", plan.inputs) << ValuesText("outputs", plan.outputs)
      << PassesText(report.passes, arguments.Flag("verbose"))
      << KernelsText(kernels, externs, roofline, arguments.Flag("verbose"))
      << fmt::format("memory: peak {:.3f} MB, sum of tensors {:.3f} MB, lower bound {:.3f} MB\n",
                     Megabytes(report.arena_bytes), Megabytes(report.sum_bytes),
                     Megabytes(report.lower_bound_bytes))
      << fmt::format(
             "constants {:.3f} MB, code {:.3f} MB, {} steps, {} values share another's memory\n",
             Megabytes(report.constant_bytes), Megabytes(report.code_bytes), report.num_steps,
             report.num_aliases)
      << BarriersText(plan);
  return absl::OkStatus();
}

/// What a package says of one target's code.
struct PackageView {
  std::string text;
  Json object;
};

std::string ClassText(const runtime::PackageInfo& info) {
  return info.device_class.empty() ? "" : fmt::format("device class {}\n", info.device_class);
}

PackageView ViewOf(const runtime::Package& package) {
  const runtime::PackageInfo& info = package.info;
  const ir::Plan& plan = package.plan;
  std::vector<int> counts(plan.kernels.size(), 0);
  std::map<std::string, int> externs;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const ir::PlanStep& step = plan.steps[i];
    const auto repeats = static_cast<int>(ir::RepeatsOf(plan, i));
    if (step.kind == ir::PlanStepKind::kKernel) counts[static_cast<size_t>(step.kernel)] += repeats;
    if (step.kind == ir::PlanStepKind::kExtern) externs[step.extern_name] += repeats;
  }
  auto kernels = Json::array();
  std::string text = fmt::format("kernels ({})\n", plan.kernels.size());
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const runtime::PackageKernel& kernel = info.kernels[i];
    kernels.push_back({{"workload", plan.kernels[i].workload_hash},
                       {"trace", plan.kernels[i].trace_hash},
                       {"name", kernel.name},
                       {"count", counts[i]},
                       {"flop", kernel.flop()},
                       {"bytes", kernel.bytes},
                       {"rung", kernel.rung},
                       {"record", kernel.record_id}});
    text +=
        fmt::format("  {} {:>5} x  {:<8} {:>9.3f} MFLOP {:>9.3f} MB  {} {}\n",
                    plan.kernels[i].workload_hash, counts[i], kernel.rung, Megabytes(kernel.flop()),
                    Megabytes(kernel.bytes), kernel.name, kernel.record_id);
  }
  for (const auto& [name, count] : externs)
    text += fmt::format("  {:<32} {:>5} x  extern\n", name, count);
  text += fmt::format("memory: peak {:.3f} MB\nconstants {:.3f} MB, {} steps\n",
                      Megabytes(plan.arena_bytes),
                      Megabytes(static_cast<int64_t>(package.constants.size())), plan.steps.size());
  auto loops = Json::array();
  for (const ir::PlanLoop& loop : plan.loops) {
    loops.push_back({{"first", loop.first}, {"count", loop.count}, {"repeats", loop.repeats}});
    text += fmt::format("steps {} to {} run {} times, one image after the other\n", loop.first,
                        loop.first + loop.count - 1, loop.repeats);
  }
  text += BarriersText(plan);
  PackageView view;
  view.object = {{"program", info.program},
                 {"target", info.target},
                 {"device_class", info.device_class},
                 {"numbers", PrecisionJson(info)},
                 {"inputs", ValuesJson(plan.inputs)},
                 {"outputs", ValuesJson(plan.outputs)},
                 {"kernels", std::move(kernels)},
                 {"externs", externs},
                 {"steps", plan.steps.size()},
                 {"loops", std::move(loops)},
                 {"barriers", BarriersJson(plan)},
                 {"memory", {{"peak_bytes", plan.arena_bytes}}},
                 {"constant_bytes", package.constants.size()}};
  view.text = std::move(text);
  return view;
}

absl::Status InspectPackage(CommandContext& context, const std::string& path) {
  // Mapped and parsed, not loaded: who looks into a package does not trust it yet, and what it says
  // can be read on a machine that cannot run it.
  const auto file = runtime::Region::MapFile(path);
  if (!file.ok()) return ToAbsl(file.status());
  const auto packages = runtime::ParsePackages(file->span());
  if (!packages.ok()) return Annotate(ToAbsl(packages.status()), path);
  const runtime::Package& first = packages->front();
  Json object = {{"package", ModelName(path)}};
  std::string text, targets;
  for (const runtime::Package& package : *packages) {
    PackageView view = ViewOf(package);
    targets += (targets.empty() ? "" : " and ") + package.info.target;
    if (packages->size() > 1) {
      text += fmt::format("for {}\n{}{}\n", package.info.target, ClassText(package.info),
                          PrecisionText(package.info));
    }
    text += view.text;
    if (&package == &first) {
      object.update(view.object);
    } else {
      object["also"].push_back(std::move(view.object));
    }
  }
  if (packages->size() > 1) {
    const Result<size_t> chosen = runtime::ChooseVariant(*packages, UsableCores());
    object["runs_here"] = TextOrNull(chosen.ok() ? (*packages)[*chosen].info.target : "");
    text += chosen.ok() ? fmt::format("this machine runs {}\n", (*packages)[*chosen].info.target)
                        : fmt::format("this machine runs none: {}\n", chosen.status().message());
  }
  context.json_result = JsonText(object);
  if (context.json()) return absl::OkStatus();
  context.out << fmt::format("{} for {}, by Hone {}\n", ModelName(path), targets,
                             first.info.program)
              << (packages->size() == 1 ? ClassText(first.info) + PrecisionText(first.info) + '\n'
                                        : "")
              << ValuesText("inputs", first.plan.inputs)
              << ValuesText("outputs", first.plan.outputs) << text;
  return absl::OkStatus();
}

}  // namespace

absl::Status RunInspect(CommandContext& context) {
  const std::string path = context.arguments.Text("MODEL");
  HONE_ASSIGN_OR_RETURN(const bool package, IsPackage(path));
  return package ? InspectPackage(context, path) : InspectModel(context, path);
}

}  // namespace hone::client
