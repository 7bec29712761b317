#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/core/cpu.h"
#include "base/status.h"
#include "base/versions.h"
#include "client/command.h"
#include "client/json_text.h"
#include "client/kernel_profile.h"
#include "client/model_inputs.h"
#include "client/model_loader.h"
#include "client/model_session.h"
#include "client/npz.h"
#include "client/output_path.h"
#include "client/sample_statistics.h"

namespace hone::client {
namespace {

constexpr size_t kMinSamples = 5;
constexpr size_t kMaxSamples = 200'000;
constexpr size_t kMaxProfiled = 2000;  // each keeps a number a step

/// Runs until the time is over, at least kMinSamples times; a tenth of the time warms up first.
/// Gives the time of each run, us.
absl::StatusOr<std::vector<double>> Measure(ModelSession& session, const MonotonicClock& clock,
                                            double seconds, KernelProfile* profile) {
  const auto budget_ns = static_cast<int64_t>(seconds * 1e9);
  const int64_t warm_until = clock.NowNs() + budget_ns / 10;
  do {
    HONE_RETURN_IF_ERROR(session.Run());
  } while (clock.NowNs() < warm_until);
  std::vector<double> samples;
  const int64_t until = clock.NowNs() + budget_ns;
  int64_t now = clock.NowNs();
  while (samples.size() < kMinSamples || (now < until && samples.size() < kMaxSamples)) {
    const int64_t begin = clock.NowNs();
    HONE_RETURN_IF_ERROR(session.Run());
    now = clock.NowNs();
    samples.push_back(static_cast<double>(now - begin) * 1e-3);
    if (profile != nullptr && samples.size() <= kMaxProfiled) profile->AddRun(session.context());
  }
  return samples;
}

nlohmann::ordered_json ProfileJson(const std::vector<KernelProfileRow>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const KernelProfileRow& row : rows) {
    nlohmann::ordered_json object = {{"name", row.name},  {"workload", row.workload},
                                     {"rung", row.rung},  {"count", row.count},
                                     {"us", row.time_us}, {"bytes", row.bytes}};
    if (row.flop > 0) object["flop"] = row.flop;
    if (row.bound_us > 0) object["roofline_share"] = row.bound_us / row.time_us;
    list.push_back(std::move(object));
  }
  return list;
}

std::string ProfileText(const std::vector<KernelProfileRow>& rows) {
  double total = 0;
  for (const KernelProfileRow& row : rows) total += row.time_us;
  std::string text = fmt::format("\n{:>10} {:>6} {:>5} {:>9} {:>9} {:>9}  {}\n", "us", "share",
                                 "count", "GFLOP/s", "GB/s", "roofline", "kernel");
  for (const KernelProfileRow& row : rows) {
    const std::string gflops =
        row.flop > 0 ? fmt::format("{:.1f}", row.flop / row.time_us * 1e-3) : "-";
    const std::string roofline =
        row.bound_us > 0 ? fmt::format("{:.0f} %", 100 * row.bound_us / row.time_us) : "-";
    text += fmt::format("{:>10.1f} {:>5.1f}% {:>5} {:>9} {:>9.1f} {:>9}  {}\n", row.time_us,
                        100 * row.time_us / total, row.count, gflops,
                        row.bytes / row.time_us * 1e-3, roofline, row.name);
  }
  return text + fmt::format("{:>10.1f} all kernels\n", total);
}

/// A time to 1 ns: what the clock tells.
double Rounded(double us) { return std::round(us * 1e3) / 1e3; }

nlohmann::ordered_json Rounded(const std::vector<double>& samples_us) {
  auto list = nlohmann::ordered_json::array();
  for (const double sample : samples_us) list.push_back(Rounded(sample));
  return list;
}

}  // namespace

absl::Status RunBench(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  const MonotonicClock& clock = *context.environment.clock;
  const std::string path = arguments.Text("MODEL");
  if (arguments.Given("outputs")) {
    HONE_RETURN_IF_ERROR(CheckOutput(arguments.Text("outputs"), InputFiles(arguments)));
  }
  HONE_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(context, path));
  HONE_ASSIGN_OR_RETURN(const NamedTensors inputs,
                        ReadOrDrawInputs(arguments, path, model.inputs, context.err));
  runtime::Context::Options options;
  options.threads = model.threads;
  const bool profiled = arguments.Flag("profile");
  if (profiled) options.profile_clock = &clock;
  options.pin = !arguments.Flag("unpinned");
  HONE_ASSIGN_OR_RETURN(ModelSession session, ModelSession::Create(model.executable, options));
  session.SetInputs(inputs);
  ir::Target target;
  Roofline roofline;
  if (profiled) {
    std::string error;
    if (!ir::ParseTarget(model.executable->info().target, &target, &error)) {
      return absl::InternalError(error);
    }
    HONE_ASSIGN_OR_RETURN(roofline, MeasureRoofline(target, clock));
  }
  // Not before threads have started: they would inherit the one CPU.
  if (options.pin) {
    const int first = OnePerCore(AllowedCpus()).front();
    if (const Status status = PinThisThread({first}); !status.ok()) return ToAbsl(status);
  }

  KernelProfile profile;
  HONE_ASSIGN_OR_RETURN(
      const std::vector<double> samples,
      Measure(session, clock, arguments.Number("seconds"), profiled ? &profile : nullptr));
  if (arguments.Given("outputs")) {
    HONE_RETURN_IF_ERROR(WriteNpz(arguments.Text("outputs"), session.Outputs()));
  }
  const SampleStatistics statistics = Summarise(samples);
  std::vector<KernelProfileRow> rows;
  if (profiled) rows = profile.Rows(*model.executable, target, roofline);

  if (!context.json()) {
    context.out << fmt::format(
        "{}: median {:.1f} us, min {:.1f}, p10 {:.1f}, p90 {:.1f} ({} runs, {} thread{}, {})\n",
        model.name, statistics.median, statistics.min, statistics.p10, statistics.p90,
        samples.size(), session.context().threads(), session.context().threads() == 1 ? "" : "s",
        model.executable->info().target);
    if (profiled) context.out << ProfileText(rows);
    return absl::OkStatus();
  }
  nlohmann::ordered_json object = {{"model", model.name},
                                   {"version", kProgramVersion},
                                   {"threads", session.context().threads()},
                                   {"target", model.executable->info().target},
                                   {"log", TextOrNull(model.log)},
                                   {"median_us", Rounded(statistics.median)},
                                   {"min_us", Rounded(statistics.min)},
                                   {"p10_us", Rounded(statistics.p10)},
                                   {"p90_us", Rounded(statistics.p90)},
                                   {"samples_us", Rounded(samples)}};
  if (profiled) object["profile"] = ProfileJson(rows);
  context.json_result = JsonText(object);
  return absl::OkStatus();
}

}  // namespace hone::client
