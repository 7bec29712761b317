#include <map>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command.h"
#include "client/json_text.h"
#include "client/log_trace_source.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "compiler/extract_kernels.h"
#include "compiler/split_attention.h"
#include "ir/target.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

ordered_json KernelJson(const compiler::ModelKernel& kernel, const LogAnswer& answer) {
  ordered_json object = {{"workload", kernel.hash},
                         {"name", kernel.name},
                         {"count", kernel.count},
                         {"rung", answer.found.rung},
                         {"record", nullptr},
                         {"rigor", nullptr},
                         {"median_us", nullptr},
                         {"low_us", nullptr},
                         {"high_us", nullptr},
                         {"why", answer.why},
                         {"stale", ordered_json::array()}};
  if (answer.median_ns > 0) {
    object["record"] = answer.found.record_id;
    object["rigor"] = answer.rigor;
    object["median_us"] = answer.median_ns * 1e-3;
    object["low_us"] = answer.low_ns * 1e-3;
    object["high_us"] = answer.high_ns * 1e-3;
  }
  for (const db::StaleRecord& stale : answer.stale) {
    object["stale"].push_back({{"record", stale.id.ToHex()}, {"why", stale.why}});
  }
  return object;
}

constexpr char kRow[] = "{:<12}  {:<4} {:<8} {:>12}  {}\n";

std::string KernelText(const compiler::ModelKernel& kernel, const LogAnswer& answer) {
  const std::string latency =
      answer.median_ns > 0 ? fmt::format("{:.2f} us", answer.median_ns * 1e-3) : "-";
  const std::string why = answer.why.empty() ? "" : fmt::format("    {}\n", answer.why);
  return fmt::format(kRow, kernel.hash.substr(0, 12), fmt::format("x{}", kernel.count),
                     answer.found.rung, latency, kernel.name) +
         why;
}

}  // namespace

absl::Status RunQuery(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  HONE_ASSIGN_OR_RETURN(const std::string target_text, ReadTarget(arguments));
  ir::Target target;
  std::string error;
  if (!ir::ParseTarget(target_text, &target, &error)) return absl::InvalidArgumentError(error);
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, arguments.Text("MODEL")));
  HONE_ASSIGN_OR_RETURN(const TraceChoice choice, ChooseTraces(arguments, context.environment));
  std::unique_ptr<LogTraceSource> log;
  if (choice.HasLog()) {
    HONE_ASSIGN_OR_RETURN(log, OpenLogTraces(arguments, choice));
  }
  measure::BuilderClient builder(LocalBuilder(context.arguments, context.environment),
                                 *context.environment.clock);
  const auto steps =
      compiler::ExtractSteps(std::move(graph), target.text, builder, ReadBatch(arguments),
                             ReadCascades(arguments), log.get());
  if (!steps.ok()) return CompileError(steps.status());

  if (log) log->BeginModel(steps->kernels);
  if (!context.json()) {
    context.out << fmt::format(kRow, "WORKLOAD", "USES", "RUNG", "TIME", "KERNEL");
  }
  ordered_json objects = ordered_json::array();
  std::map<std::string, int> rungs;
  int known = 0;  // by records or by verdicts
  std::vector<compiler::FoundTrace> found;
  for (const compiler::ModelKernel& kernel : steps->kernels) {
    LogAnswer answer{.found = {.rung = "default"}, .why = "there is no log"};
    if (log && kernel.count > 0) {
      HONE_ASSIGN_OR_RETURN(answer, log->Look(kernel.workload, kernel.hash, target));
    }
    found.push_back(answer.found);
    if (kernel.count == 0) continue;
    ++rungs[answer.found.rung];
    known += answer.median_ns > 0 || answer.found.judged ? 1 : 0;
    objects.push_back(KernelJson(kernel, answer));
    if (!log) answer.why.clear();  // the end says it once
    if (!context.json()) context.out << KernelText(kernel, answer);
  }
  int stale = 0;
  if (log) {
    HONE_ASSIGN_OR_RETURN(stale, compiler::CountStaleAttention(*steps, target, found, *log));
  }
  context.json_result = JsonText(ordered_json({{"target", target.text},
                                               {"rungs", rungs},
                                               {"stale_attention", stale},
                                               {"kernels", objects}}));
  if (!context.json()) {
    for (const auto& [rung, count] : rungs) context.out << fmt::format("{} {}\n", count, rung);
    context.err << StaleAttentionText(stale, objects.size());
    if (known == 0) context.err << NothingKnownText(arguments, choice, arguments.Text("MODEL"));
  }
  return absl::OkStatus();
}

}  // namespace hone::client
