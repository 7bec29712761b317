// bench-search [--score POOLS] [--measure [--model F.onnx] [--trials N]] [--replay POOLS [--seeds
// N]]
//              [--record POOLS --model F.onnx…] [--target T]
// How fast and how well the search searches: candidates scored a second by the trees with their
// features; candidates built, checked and measured a second on a model's tasks, as `hone tune` does
// it; and, on recorded pools of random candidates, trials to 95 % of a pool's best by trees that
// never saw the task, beside random order and the analytic model. --record makes such pools.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

#include "base/core/clock.h"
#include "base/core/cpu.h"
#include "base/core/random.h"
#include "base/program_options.h"
#include "base/status.h"
#include "bench/search/model_tasks.h"
#include "bench/search/pool.h"
#include "bench/search/replay.h"
#include "bench/task_tuning.h"
#include "costmodel/point_scores.h"
#include "measure/helper_check.h"

namespace hone::bench {
namespace {

constexpr double kLeastScored = 500'000, kLeastMeasured = 20, kLeastGain = 2;
constexpr int kScoringThreads = 2;

struct Options {
  std::string score, replay, record, target;
  bool measure = false;
  std::vector<std::string> models;
  int64_t trials = 0;
  int seeds = 0;
  size_t candidates = 300, tasks_per_model = 0;
};

std::string_view Met(bool met) { return met ? "met" : "NOT MET"; }

absl::StatusOr<bool> Score(const std::vector<Pool>& pools, const MonotonicClock& clock) {
  std::vector<costmodel::TrainingTask> rows;
  for (const Pool& pool : pools) {
    const costmodel::FeatureExtractor extractor(*pool.space);
    costmodel::TrainingTask task;
    for (const Pool::Row& r : pool.rows) {
      task.features.push_back(extractor.Extract(r.id));
      task.labels.push_back(r.median_ns > 0 ? static_cast<float>(pool.BestNs() / r.median_ns) : 0);
    }
    rows.push_back(std::move(task));
  }
  HONE_ASSIGN_OR_RETURN(const std::string bytes, costmodel::XgboostModel::Train(rows, 0));
  HONE_ASSIGN_OR_RETURN(const auto model, costmodel::XgboostModel::Load(bytes));
  constexpr size_t kPoints = 1 << 18;  // as many as search::TaskSearch scores of one task
  std::vector<double> rates, alone;
  Random random(0);
  for (const Pool& pool : pools) {
    const costmodel::FeatureExtractor extractor(*pool.space);
    std::vector<uint64_t> ids(kPoints);
    for (uint64_t& id : ids) id = random.Below(pool.space->product());
    for (const int threads : {1, kScoringThreads}) {
      const int64_t start_ns = clock.NowNs();
      HONE_RETURN_IF_ERROR(costmodel::ScorePoints(extractor, *model, ids, threads).status());
      const double seconds = static_cast<double>(clock.NowNs() - start_ns) * 1e-9;
      (threads == 1 ? alone : rates).push_back(static_cast<double>(kPoints) / seconds);
    }
  }
  std::ranges::sort(rates);
  std::ranges::sort(alone);
  const double median = rates[rates.size() / 2];
  const bool met = median >= kLeastScored;
  std::cout << fmt::format(
      "scoring: {:.0f} candidates/s on {} threads (median over {} spaces, {:.0f} to {:.0f}), "
      "{:.0f} on one; {} bags of {} trees of depth {}, features included; at least {:.0f}: {}\n",
      median, kScoringThreads, rates.size(), rates.front(), rates.back(), alone[alone.size() / 2],
      costmodel::XgboostModel::kBags, costmodel::XgboostModel::kRounds,
      costmodel::XgboostModel::kDepth, kLeastScored, Met(met));
  return met;
}

absl::StatusOr<bool> Measure(const Options& options, const ir::Target& target,
                             const MonotonicClock& clock) {
  std::vector<ModelTask> tasks;
  if (options.models.empty()) {
    HONE_ASSIGN_OR_RETURN(tasks, TasksOfResNet18(target, clock));
  }
  for (const std::string& model : options.models) {
    HONE_ASSIGN_OR_RETURN(const auto more, TasksOfModel(model, target, clock));
    tasks.insert(tasks.end(), more.begin(), more.end());
  }
  const measure::LocalMeasurerOptions measurer = MeasurerOptionsFor(target);
  std::vector<double> rates;
  double reference = 0;
  std::cout << fmt::format("measuring, {} candidates a task for {}:\n", options.trials,
                           target.text);
  for (const ModelTask& t : tasks) {
    HONE_ASSIGN_OR_RETURN(const TunedTask tuned,
                          TuneTask(t.workload, target, measurer, options.trials, 0, clock));
    const double seconds = tuned.search_seconds - tuned.reference_seconds;
    rates.push_back(static_cast<double>(tuned.best_first.size()) / seconds);
    reference += tuned.reference_seconds;
    std::cout << fmt::format(
                     "  {:44} {:6.1f} candidates/s, {} of {} right in {:.2f} s; default and oracle "
                     "{:.2f} s apart",
                     t.name, rates.back(), tuned.best_first.size(), tuned.trials, seconds,
                     tuned.reference_seconds)
              << std::endl;
  }
  if (rates.empty()) return absl::InvalidArgumentError("the model has no tasks");
  std::ranges::sort(rates);
  const double median = rates[rates.size() / 2];
  const bool met = median >= kLeastMeasured;
  std::cout << fmt::format(
      "measuring: {:.1f} candidates/s built, checked and measured (median over {} tasks, {:.1f} to "
      "{:.1f}); once-per-task defaults and oracles left out, {:.1f} s together; at least {:.0f}: "
      "{}\n",
      median, rates.size(), rates.front(), rates.back(), reference, kLeastMeasured, Met(met));
  return met;
}

bool PrintReplay(const ReplayReport& report, int seeds) {
  double candidates = 0;
  const ReplayedTask* worst = nullptr;
  double least = 0;
  std::cout << fmt::format("{:44} {:>10} {:>5} {:>8} {:>8} {:>8}  trials to 95 % of the best\n",
                           "task (not seen by its model)", "candidates", "good", "random",
                           "analytic", "model");
  for (const ReplayedTask& t : report.tasks) {
    const auto mean = [](const std::vector<double>& v) {
      double sum = 0;
      for (const double x : v) sum += x;
      return sum / static_cast<double>(v.size());
    };
    const double ratio = t.random / mean(t.model);
    if (!worst || ratio < least) worst = &t, least = ratio;
    candidates += static_cast<double>(t.candidates);
    std::cout << fmt::format("{:44} {:10} {:5} {:8.1f} {:8.1f} {:8.1f}\n", t.name, t.candidates,
                             t.good, t.random, mean(t.analytic), mean(t.model));
  }
  const auto text = [](const Interval& i) {
    return fmt::format("{:.2f} [{:.2f}, {:.2f}]", i.value, i.low, i.high);
  };
  const bool gain = report.model_over_random.low >= kLeastGain;
  const bool above = report.model_over_random.value >= report.analytic_over_random.value;
  std::cout << fmt::format(
      "replay: {} tasks, {:.0f} candidates, {} seeds; fewer trials than random by {} (lower bound "
      "at least {:.0f}: {}), analytic alone by {} (model not below it: {}), model beside analytic "
      "{}; worst task {}: {:.2f}\n",
      report.tasks.size(), candidates, seeds, text(report.model_over_random), kLeastGain, Met(gain),
      text(report.analytic_over_random), Met(above), text(report.model_over_analytic), worst->name,
      least);
  return gain && above;
}

/// The heaviest tasks of different operators whose Spaces are large enough.
std::vector<const ModelTask*> ChooseTasks(const std::vector<ModelTask>& tasks,
                                          const ir::Target& target, const Options& options) {
  std::vector<const ModelTask*> order;
  for (const ModelTask& t : tasks) order.push_back(&t);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) { return a->flop > b->flop; });
  std::vector<const ModelTask*> chosen;
  std::set<std::string> met;
  for (const ModelTask* t : order) {
    if (chosen.size() >= options.tasks_per_model) break;
    if (met.count(t->operators)) continue;
    const schedule::Space space(*t->workload, target, ir::AccuracyClass::kDefault);
    if (DrawPoints(space, options.candidates, 0).size() < options.candidates) continue;
    met.insert(t->operators);
    chosen.push_back(t);
  }
  return chosen;
}

absl::StatusOr<Pool> RecordTask(const ModelTask& task, const ir::Target& target,
                                const Options& options, const MonotonicClock& clock) {
  Pool pool;
  pool.name = task.name;
  pool.target = target.text;
  pool.workload = task.workload;
  pool.space =
      std::make_shared<const schedule::Space>(*task.workload, target, ir::AccuracyClass::kDefault);
  measure::LocalMeasurerOptions measurer_options = MeasurerOptionsFor(target);
  pool.device_class = measurer_options.device_class;
  measure::LocalMeasurer measurer(measurer_options, clock);
  for (const uint64_t id : DrawPoints(*pool.space, options.candidates, 0)) {
    HONE_ASSIGN_OR_RETURN(const schedule::Trace trace, pool.space->TraceOf(id));
    measurer.Submit({.id = static_cast<int64_t>(pool.rows.size()),
                     .workload = task.workload,
                     .target = target.text,
                     .trace = schedule::ToText(trace)});
    pool.rows.push_back({.id = id, .outcome = "worker_lost"});
  }
  while (measurer.num_in_flight() > 0) {
    for (const measure::MeasureResult& r : measurer.Collect(-1)) {
      Pool::Row& row = pool.rows[static_cast<size_t>(r.id)];
      row.outcome = measure::ToString(r.outcome);
      if (r.outcome == measure::Outcome::kOk)
        row.median_ns = static_cast<double>(measure::MedianNs(r.samples_ns));
    }
  }
  std::erase_if(pool.rows, [](const Pool::Row& r) { return r.outcome == "worker_lost"; });
  return pool;
}

absl::Status Record(const Options& options, const ir::Target& target, const MonotonicClock& clock) {
  std::filesystem::create_directories(options.record);
  for (const std::string& model : options.models) {
    HONE_ASSIGN_OR_RETURN(const auto tasks, TasksOfModel(model, target, clock));
    for (const ModelTask* t : ChooseTasks(tasks, target, options)) {
      std::string file = t->name.substr(0, t->name.find(':'));
      std::ranges::replace(file, '/', '_');
      const std::string path = fmt::format("{}/{}.pool", options.record, file);
      if (std::filesystem::exists(path)) continue;
      const int64_t start_ns = clock.NowNs();
      HONE_ASSIGN_OR_RETURN(const Pool pool, RecordTask(*t, target, options, clock));
      HONE_RETURN_IF_ERROR(WritePool(pool, path));
      std::cout << fmt::format(
                       "{}: {} candidates in {:.1f} s, best {:.1f} us", t->name, pool.rows.size(),
                       static_cast<double>(clock.NowNs() - start_ns) * 1e-9, pool.BestNs() * 1e-3)
                << std::endl;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Pool>> OpenPools(const std::string& folder) {
  HONE_ASSIGN_OR_RETURN(auto pools, ReadPools(folder));
  if (pools.size() < 2)
    return absl::NotFoundError(folder + " has no two pools; record some with --record");
  for (const Pool& pool : pools) {
    if (pool.foreign > 0)
      std::cout << fmt::format("{}: {} of its candidates are no points of today's space\n",
                               pool.name, pool.foreign);
  }
  return pools;
}

absl::StatusOr<bool> Run(const Options& options, const ir::Target& target) {
  const SystemMonotonicClock clock;
  bool met = true;
  if (options.measure || !options.record.empty()) {
    const measure::LocalMeasurerOptions measurer = MeasurerOptionsFor(target);
    HONE_RETURN_IF_ERROR(measure::CheckHelpers(measurer.builder, measurer.runner, clock));
  }
  if (!options.record.empty()) {
    HONE_RETURN_IF_ERROR(Record(options, target, clock));
  }
  if (!options.score.empty()) {
    HONE_ASSIGN_OR_RETURN(const auto pools, OpenPools(options.score));
    HONE_ASSIGN_OR_RETURN(const bool fast, Score(pools, clock));
    met = met && fast;
  }
  if (options.measure) {
    HONE_ASSIGN_OR_RETURN(const bool fast, Measure(options, target, clock));
    met = met && fast;
  }
  if (!options.replay.empty()) {
    HONE_ASSIGN_OR_RETURN(const auto pools, OpenPools(options.replay));
    HONE_ASSIGN_OR_RETURN(const ReplayReport report,
                          Replay(pools, {.seeds = options.seeds, .threads = UsableCores()}));
    const bool good = PrintReplay(report, options.seeds);
    met = met && good;
    HONE_ASSIGN_OR_RETURN(
        const ReplayReport unseen,
        Replay(pools, {.seeds = options.seeds, .threads = UsableCores(), .same_operators = false}));
    const Interval& gain = unseen.model_over_random;
    std::cout << fmt::format(
        "replay with no task of the same operators in the training set: fewer trials than random "
        "by {:.2f} [{:.2f}, {:.2f}]\n",
        gain.value, gain.low, gain.high);
  }
  return met;
}

constexpr std::array kOptions = {
    OptionSpec{.name = "score",
               .kind = ValueKind::kFile,
               .argument = "POOLS",
               .help = "how many candidates the trees score a second"},
    OptionSpec{.name = "measure", .help = "how many candidates are built and measured a second"},
    OptionSpec{.name = "replay",
               .kind = ValueKind::kFile,
               .argument = "POOLS",
               .help = "trials to 95 % of the best"},
    OptionSpec{.name = "record",
               .kind = ValueKind::kFile,
               .argument = "POOLS",
               .help = "make pools of random candidates"},
    OptionSpec{.name = "model",
               .kind = ValueKind::kFile,
               .argument = "F.onnx",
               .help = "whose tasks are measured or recorded",
               .repeated = true},
    OptionSpec{.name = "target",
               .kind = ValueKind::kText,
               .argument = "T",
               .help = "what code is made for; this machine without it"},
    OptionSpec{.name = "trials",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "candidates measured",
               .default_text = "48",
               .low = 1},
    OptionSpec{.name = "seeds",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "replays",
               .default_text = "10",
               .low = 1},
    OptionSpec{.name = "tasks-per-model",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "pools recorded",
               .default_text = "2",
               .low = 1},
};

std::optional<Options> OptionsOf(int argc, char** argv) {
  const auto words = ReadOptions(
      "bench-search [--score POOLS] [--measure [--model F.onnx] [--trials N]] [--replay POOLS "
      "[--seeds N]] [--record POOLS --model F.onnx… [--tasks-per-model N]] [--target T]",
      kOptions, argc, argv);
  if (!words) return std::nullopt;
  Options options{.score = words->Text("score"),
                  .replay = words->Text("replay"),
                  .record = words->Text("record"),
                  .target = words->Text("target"),
                  .measure = words->Flag("measure"),
                  .models = words->List("model"),
                  .trials = words->Integer("trials"),
                  .seeds = static_cast<int>(words->Integer("seeds")),
                  .tasks_per_model = static_cast<size_t>(words->Integer("tasks-per-model"))};
  if (options.target.empty()) options.target = fmt::format("cpu:native,threads={}", UsableCores());
  if (options.measure || !options.score.empty() || !options.replay.empty() ||
      !options.record.empty())
    return options;
  std::cerr << "nothing to do; see --help\n";
  return std::nullopt;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) {
  const auto options = hone::bench::OptionsOf(argc, argv);
  if (!options) return 2;
  hone::ir::Target target;
  std::string error;
  if (!hone::ir::ParseTarget(hone::ir::ResolveNative(options->target, hone::UsableCores()), &target,
                             &error)) {
    std::cerr << error << "\n";
    return 2;
  }
  const absl::StatusOr<bool> met = hone::bench::Run(*options, target);
  if (!met.ok()) {
    std::cerr << hone::StatusMessage(met.status()) << "\n";
    return 2;
  }
  return *met ? 0 : 1;
}
