#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/core/cpu.h"
#include "base/status.h"
#include "base/versions.h"
#include "client/bench_turns.h"
#include "client/busy_processes.h"
#include "client/command.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/kernel_profile.h"
#include "client/machine_warnings.h"
#include "client/model_comparison.h"
#include "client/model_inputs.h"
#include "client/model_loader.h"
#include "client/model_session.h"
#include "client/npz.h"
#include "client/onnxruntime_subject.h"
#include "client/output_path.h"
#include "client/sample_statistics.h"
#include "measure/device_probe.h"

namespace hone::client {
namespace {

constexpr size_t kMaxProfiled = 2000;  // each keeps a number a step

/// A model of ours, ready to run.
class ModelSubject final : public BenchSubject {
 public:
  ModelSubject(LoadedModel model, ModelSession session, const MonotonicClock& clock)
      : model_(std::move(model)), session_(std::move(session)), clock_(clock) {}

  absl::Status Run(int runs, std::vector<int64_t>& run_ns) override {
    for (int i = 0; i < runs; ++i) {
      const int64_t begin_ns = clock_.NowNs();
      HONE_RETURN_IF_ERROR(session_.Run());
      run_ns.push_back(clock_.NowNs() - begin_ns);
      if (profile_ && ++profiled_ <= kMaxProfiled) profile_->AddRun(session_.context());
    }
    return absl::OkStatus();
  }
  bool spins() const override { return session_.context().threads() > 1; }
  /// From now on.
  void Profile() { profile_.emplace(); }

  const LoadedModel& model() const { return model_; }
  const ModelSession& session() const { return session_; }
  const KernelProfile& profile() const { return *profile_; }

 private:
  const LoadedModel model_;
  ModelSession session_;
  const MonotonicClock& clock_;
  std::optional<KernelProfile> profile_;
  size_t profiled_ = 0;
};

/// What one of them is called, and what was measured.
struct Row {
  std::string name;
  nlohmann::ordered_json about;  ///< what --json says beside times
  SampleStatistics us;
  PairedRatio ratio;  ///< the first one's time over this one's
};

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

/// `median_us`: of a whole run.
std::string ProfileText(const std::vector<KernelProfileRow>& rows, double median_us) {
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
  return text + fmt::format(
                    "{:>10.1f} all kernels; us is the median of each step, added up. A whole run's "
                    "median, {:.1f} us,\n           also has what lies between steps, and medians "
                    "need not add up to it.\n",
                    total, median_us);
}

/// A time to 1 ns: what the clock tells.
double Rounded(double us) { return std::round(us * 1e3) / 1e3; }

std::vector<double> Us(const std::vector<int64_t>& ns) {
  std::vector<double> us;
  us.reserve(ns.size());
  for (const int64_t each : ns) us.push_back(static_cast<double>(each) * 1e-3);
  return us;
}

nlohmann::ordered_json UsJson(const std::vector<int64_t>& ns) {
  auto list = nlohmann::ordered_json::array();
  for (const double us : Us(ns)) list.push_back(Rounded(us));
  return list;
}

nlohmann::ordered_json RowJson(const Row& row) {
  nlohmann::ordered_json object = row.about;
  object["median_us"] = Rounded(row.us.median);
  object["min_us"] = Rounded(row.us.min);
  object["p10_us"] = Rounded(row.us.p10);
  object["p90_us"] = Rounded(row.us.p90);
  object["p99_us"] = Rounded(row.us.p99);
  object["p999_us"] = Rounded(row.us.p999);
  object["runs_per_second"] = Rounded(1e6 / row.us.mean);
  return object;
}

/// The percentiles to print: their names, and those of a row.
std::vector<std::string> PercentileNames(bool all) {
  if (all) return {"p50", "p90", "p99", "p99.9"};
  return {"p50", "p99"};
}
std::vector<double> Percentiles(const Row& row, bool all) {
  if (all) return {row.us.median, row.us.p90, row.us.p99, row.us.p999};
  return {row.us.median, row.us.p99};
}

std::string OneText(const Row& row, size_t runs, bool all) {
  const std::vector<std::string> names = PercentileNames(all);
  const std::vector<double> us = Percentiles(row, all);
  std::string text = row.name + ":";
  for (size_t i = 0; i < names.size(); ++i) {
    text += fmt::format("{} {} {:.3f} ms", i == 0 ? "" : ",", names[i], us[i] * 1e-3);
  }
  const auto threads = row.about["threads"].get<int>();
  return text + fmt::format(", {:.1f} runs/s ({} runs, {} thread{}, {})\n", 1e6 / row.us.mean, runs,
                            threads, threads == 1 ? "" : "s",
                            row.about["target"].get<std::string>());
}

std::string TableText(const std::vector<Row>& rows, size_t turns, bool all) {
  size_t wide = 0;
  for (const Row& row : rows) wide = std::max(wide, row.name.size());
  std::string text = fmt::format("{:{}}", "", wide);
  for (const std::string& name : PercentileNames(all)) text += fmt::format(" {:>10}", name + " ms");
  text += fmt::format(" {:>10}\n", "runs/s");
  for (const Row& row : rows) {
    text += fmt::format("{:{}}", row.name, wide);
    for (const double us : Percentiles(row, all)) text += fmt::format(" {:>10.3f}", us * 1e-3);
    text += fmt::format(" {:>10.1f}", 1e6 / row.us.mean);
    if (&row != rows.data()) {
      text += fmt::format("  {:.3f} x as fast as the first [{:.3f}, {:.3f}]", row.ratio.median,
                          row.ratio.low, row.ratio.high);
    }
    text += '\n';
  }
  return text +
         fmt::format("{} turns each; ratios are medians over turns with a 95 % interval\n", turns);
}

absl::Status Usage(const std::string& message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

/// What has no meaning for several.
absl::Status CheckSeveral(const Arguments& arguments) {
  const bool against = arguments.Given("against");
  if (arguments.List("MODEL").size() == 1 && !against) return absl::OkStatus();
  for (const char* option : {"profile", "outputs"}) {
    if (!arguments.GivenOnLine(option)) continue;
    return Usage(fmt::format("--{} is for one model by itself{}", option,
                             against ? ", without --against" : ""));
  }
  return absl::OkStatus();
}

/// All of one call, from loading to printing.
class Bench {
 public:
  explicit Bench(CommandContext& context)
      : context_(context),
        arguments_(context.arguments),
        clock_(*context.environment.clock),
        pinned_(!arguments_.Flag("unpinned")),
        profiled_(arguments_.Flag("profile") && arguments_.List("MODEL").size() == 1 &&
                  !arguments_.Given("against")) {}

  absl::Status Run() {
    for (const std::string& path : arguments_.List("MODEL")) HONE_RETURN_IF_ERROR(Load(path));
    if (arguments_.Given("against")) HONE_RETURN_IF_ERROR(LoadRival());
    if (profiled_) HONE_RETURN_IF_ERROR(BeginProfile());
    // Before this thread has one CPU alone, which they would inherit.
    HONE_ASSIGN_OR_RETURN(const BusyProcesses busy,
                          BusyProcesses::Start(static_cast<int>(arguments_.Integer("load"))));
    if (pinned_) {
      const int first = OnePerCore(AllowedCpus()).front();
      if (const Status status = PinThisThread({first}); !status.ok()) return ToAbsl(status);
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<BenchTimes> times,
                          RunBenchTurns(subjects_, arguments_.Number("seconds"), clock_));
    if (arguments_.Given("outputs")) {
      HONE_RETURN_IF_ERROR(
          WriteNpz(arguments_.Text("outputs"), models_.front()->session().Outputs()));
    }
    for (size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].us = Summarise(Us(times[i].run_ns));
      rows_[i].ratio = RatioOf(times.front().turn_ns, times[i].turn_ns);
    }
    if (rows_.size() == 1) {
      TellOne(times.front());
    } else {
      TellAll(times);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Load(const std::string& path) {
    HONE_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(context_, path));
    HONE_ASSIGN_OR_RETURN(NamedTensors inputs,
                          ReadOrDrawInputs(arguments_, path, model.inputs, context_.err));
    runtime::Context::Options options;
    options.threads = model.threads;
    if (profiled_) options.profile_clock = &clock_;
    options.pin = pinned_;
    HONE_ASSIGN_OR_RETURN(ModelSession session, ModelSession::Create(model.executable, options));
    session.SetInputs(inputs);
    const int threads = session.context().threads();
    context_.err << ManyThreadsText(threads, CpusHere());
    const bool several = arguments_.List("MODEL").size() > 1 || arguments_.Given("against");
    rows_.push_back({.name = several ? path : model.name,
                     .about = {{"model", model.name},
                               {"version", kProgramVersion},
                               {"threads", threads},
                               {"target", model.executable->info().target},
                               {"log", TextOrNull(model.log)}}});
    if (several) rows_.back().about["file"] = path;
    models_.push_back(std::make_unique<ModelSubject>(std::move(model), std::move(session), clock_));
    subjects_.push_back(models_.back().get());
    if (!rival_.model_path.empty() || !path.ends_with(".onnx")) return absl::OkStatus();
    rival_ = {.model_path = path, .threads = threads};
    rival_inputs_ = std::move(inputs);
    return absl::OkStatus();
  }

  absl::Status LoadRival() {
    if (rival_.model_path.empty()) {
      return Usage("--against onnxruntime runs a model (.onnx), and only packages are given");
    }
    const std::vector<int> cpus = OnePerCore(AllowedCpus());
    const auto cores = static_cast<int>(cpus.size());
    if (pinned_ && rival_.threads <= cores)
      rival_.cpus.assign(cpus.begin(), cpus.begin() + rival_.threads);
    for (const std::string& bound : arguments_.List("bind")) {
      const size_t equals = bound.find('=');
      rival_.bound[bound.substr(0, equals)] = bound.substr(equals + 1);
    }
    HONE_ASSIGN_OR_RETURN(onnxruntime_, OnnxRuntimeSubject::Start(rival_, rival_inputs_));
    rows_.push_back({.name = "onnxruntime " + onnxruntime_->version(),
                     .about = {{"model", ModelName(rival_.model_path)},
                               {"runtime", "onnxruntime"},
                               {"version", onnxruntime_->version()},
                               {"threads", rival_.threads},
                               {"file", rival_.model_path}}});
    subjects_.push_back(onnxruntime_.get());
    return absl::OkStatus();
  }

  absl::Status BeginProfile() {
    ModelSubject& subject = *models_.front();
    ir::Target target;
    std::string error;
    if (!ir::ParseTarget(subject.model().executable->info().target, &target, &error)) {
      return absl::InternalError(error);
    }
    HONE_ASSIGN_OR_RETURN(rates_, measure::MeasureRates(target, clock_));
    subject.Profile();
    return absl::OkStatus();
  }

  void TellOne(const BenchTimes& times) {
    const Row& row = rows_.front();
    std::vector<KernelProfileRow> kernels;
    if (profiled_) {
      const ModelSubject& subject = *models_.front();
      kernels = subject.profile().Rows(*subject.model().executable, rates_);
    }
    if (!context_.json()) {
      context_.out << OneText(row, times.run_ns.size(), arguments_.Flag("percentiles"));
      if (profiled_) context_.out << ProfileText(kernels, row.us.median);
      return;
    }
    nlohmann::ordered_json object = RowJson(row);
    object["samples_us"] = UsJson(times.run_ns);
    if (profiled_) object["profile"] = ProfileJson(kernels);
    context_.json_result = JsonText(object);
  }

  void TellAll(const std::vector<BenchTimes>& times) {
    if (!context_.json()) {
      context_.out << TableText(rows_, times.front().turn_ns.size(),
                                arguments_.Flag("percentiles"));
      return;
    }
    auto list = nlohmann::ordered_json::array();
    for (size_t i = 0; i < rows_.size(); ++i) {
      list.push_back(RowJson(rows_[i]));
      list.back()["turns_us"] = UsJson(times[i].turn_ns);
      if (i == 0) continue;
      const PairedRatio& ratio = rows_[i].ratio;
      list.back()["ratio"] = {{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}};
    }
    context_.json_result = JsonText(nlohmann::ordered_json({{"models", std::move(list)}}));
  }

  CommandContext& context_;
  const Arguments& arguments_;
  const MonotonicClock& clock_;
  const bool pinned_, profiled_;
  measure::DeviceRates rates_;
  std::vector<std::unique_ptr<ModelSubject>> models_;
  OnnxRuntimeSubject::Options rival_;
  NamedTensors rival_inputs_;
  std::unique_ptr<OnnxRuntimeSubject> onnxruntime_;
  std::vector<BenchSubject*> subjects_;
  std::vector<Row> rows_;  ///< one a subject
};

}  // namespace

absl::Status RunBench(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  HONE_RETURN_IF_ERROR(CheckSeveral(arguments));
  if (arguments.Given("outputs")) {
    HONE_RETURN_IF_ERROR(CheckOutput(arguments.Text("outputs"), InputFiles(arguments)));
  }
  return Bench(context).Run();
}

}  // namespace hone::client
