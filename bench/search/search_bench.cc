// bench-search [--score POOLS] [--measure [--model F.onnx] [--trials N]] [--replay POOLS [--seeds
// N]]
//              [--record POOLS --model F.onnx…] [--regret --model F.onnx…] [--target T]
// How fast and how well the search searches: candidates scored a second by the trees with their
// features; candidates built, checked and measured a second on a model's tasks, as `hone tune` does
// it; and, on recorded pools of random candidates, trials to 95 % of a pool's best by trees that
// never saw the task, beside random order and the analytic model. --record makes such pools.
// --regret: how far the search is from the best known schedule after 16 to 128 trials.
#include <fmt/format.h>
#include <fmt/ranges.h>

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
#include "bench/search/measured_pool.h"
#include "bench/search/model_tasks.h"
#include "bench/search/pool.h"
#include "bench/search/regret.h"
#include "bench/search/replay.h"
#include "bench/task_tuning.h"
#include "costmodel/point_scores.h"
#include "db/memory_database.h"
#include "measure/helper_check.h"

namespace hone::bench {
namespace {

constexpr double kLeastScored = 500'000, kLeastMeasured = 20, kLeastGain = 2;
constexpr int kScoringThreads = 2;

struct Options {
  std::string score, replay, record, target;
  bool measure = false, regret = false;
  std::vector<std::string> models;
  int64_t trials = 0;
  int seeds = 0;
  size_t candidates = 300, tasks_per_model = 0, random = 0;
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
    db::MemoryDatabase log;
    HONE_ASSIGN_OR_RETURN(
        const TunedTask tuned,
        TuneTask(t.workload, target, measurer, {.trials = options.trials}, log, clock));
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
                                          const ir::Target& target, const Options& options,
                                          size_t least) {
  std::vector<const ModelTask*> order;
  for (const ModelTask& t : tasks) order.push_back(&t);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) { return a->flop > b->flop; });
  std::vector<const ModelTask*> chosen;
  std::set<std::string> met;
  for (const ModelTask* t : order) {
    if (chosen.size() >= options.tasks_per_model) break;
    if (met.count(t->operators)) continue;
    const schedule::Space space(*t->workload, target, ir::AccuracyClass::kDefault);
    if (DrawPoints(space, least, 0).size() < least) continue;
    met.insert(t->operators);
    chosen.push_back(t);
  }
  return chosen;
}

absl::Status Record(const Options& options, const ir::Target& target, const MonotonicClock& clock) {
  std::filesystem::create_directories(options.record);
  for (const std::string& model : options.models) {
    HONE_ASSIGN_OR_RETURN(const auto tasks, TasksOfModel(model, target, clock));
    for (const ModelTask* t : ChooseTasks(tasks, target, options, options.candidates)) {
      std::string file = t->name.substr(0, t->name.find(':'));
      std::ranges::replace(file, '/', '_');
      const std::string path = fmt::format("{}/{}.pool", options.record, file);
      if (std::filesystem::exists(path)) continue;
      const int64_t start_ns = clock.NowNs();
      HONE_ASSIGN_OR_RETURN(const Pool pool, MeasurePool(*t, target, options.candidates, clock));
      HONE_RETURN_IF_ERROR(WritePool(pool, path));
      std::cout << fmt::format(
                       "{}: {} candidates in {:.1f} s, best {:.1f} us", t->name, pool.rows.size(),
                       static_cast<double>(clock.NowNs() - start_ns) * 1e-9, pool.BestNs() * 1e-3)
                << std::endl;
    }
  }
  return absl::OkStatus();
}

bool PrintRegret(const RegretReport& report, const std::vector<int>& checkpoints) {
  constexpr int kJudged = 64;
  constexpr double kMedian = 0.03, kMost = 0.10, kLeastRatio = 3;
  bool met = true;
  const RegretOfVariant& random = report.variants.back();
  for (const RegretOfVariant& v : report.variants) {
    std::cout << fmt::format("{:14}", v.name);
    for (size_t c = 0; c < checkpoints.size(); ++c) {
      const Interval median = QuantileOf(v.regret[c], 0.5), most = QuantileOf(v.regret[c], 0.9);
      std::cout << fmt::format("  {}: {:.1f} % [{:.1f}, {:.1f}], p90 {:.1f} %", checkpoints[c],
                               100 * median.value, 100 * median.low, 100 * median.high,
                               100 * most.value);
      if (&v == &report.variants.front() && checkpoints[c] == kJudged)
        met = median.value <= kMedian && most.value <= kMost;
    }
    const Interval fewer = GeometricMeanOf(random.trials, v.trials);
    std::cout << fmt::format("  trials than random: {:.2f} × fewer [{:.2f}, {:.2f}]\n", fewer.value,
                             fewer.low, fewer.high);
    if (&v == &report.variants.front()) met = met && fewer.low >= kLeastRatio;
  }
  std::cout << fmt::format(
      "regret of the search after {} trials: median at most {:.0f} %, p90 at most {:.0f} %, trials "
      "to 95 % at least {:.0f} × fewer than random: {}\n",
      kJudged, 100 * kMedian, 100 * kMost, kLeastRatio, Met(met));
  return met;
}

absl::StatusOr<bool> Regret(const Options& options, const ir::Target& target,
                            const MonotonicClock& clock) {
  const RegretOptions regret{.random = options.random, .seeds = options.seeds};
  const auto least = static_cast<size_t>(2 * regret.checkpoints.back());
  std::vector<ModelTask> chosen;
  for (const std::string& model : options.models) {
    HONE_ASSIGN_OR_RETURN(const auto tasks, TasksOfModel(model, target, clock));
    for (const ModelTask* t : ChooseTasks(tasks, target, options, least)) chosen.push_back(*t);
  }
  if (chosen.empty())
    return absl::InvalidArgumentError("no task with enough schedules; name models with --model");
  std::cout << fmt::format(
                   "regret in % after {} trials, and trials to 95 %, of each search and task:",
                   fmt::join(regret.checkpoints, ", "))
            << std::endl;
  HONE_ASSIGN_OR_RETURN(const RegretReport report, MeasureRegret(chosen, target, regret, clock));
  return PrintRegret(report, regret.checkpoints);
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
  if (options.measure || options.regret || !options.record.empty()) {
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
  if (options.regret) {
    HONE_ASSIGN_OR_RETURN(const bool good, Regret(options, target, clock));
    met = met && good;
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
    OptionSpec{.name = "regret", .help = "how far from the best known schedule searches end"},
    OptionSpec{.name = "random",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "candidates of the random search of --regret",
               .default_text = "3000",
               .low = 21},
    OptionSpec{.name = "model",
               .kind = ValueKind::kFile,
               .argument = "F.onnx",
               .help = "whose tasks are measured, recorded or searched",
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
               .help = "replays; searches of --regret",
               .default_text = "10",
               .low = 1},
    OptionSpec{.name = "tasks-per-model",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "pools recorded, tasks of --regret",
               .default_text = "2",
               .low = 1},
};

std::optional<Options> OptionsOf(int argc, char** argv) {
  const auto words = ReadOptions(
      "bench-search [--score POOLS] [--measure [--model F.onnx] [--trials N]] [--replay POOLS "
      "[--seeds N]] [--record POOLS --model F.onnx… [--tasks-per-model N]] [--regret "
      "--model F.onnx… [--random N] [--seeds N] [--tasks-per-model N]] [--target T]",
      kOptions, argc, argv);
  if (!words) return std::nullopt;
  Options options{.score = words->Text("score"),
                  .replay = words->Text("replay"),
                  .record = words->Text("record"),
                  .target = words->Text("target"),
                  .measure = words->Flag("measure"),
                  .regret = words->Flag("regret"),
                  .models = words->List("model"),
                  .trials = words->Integer("trials"),
                  .seeds = static_cast<int>(words->Integer("seeds")),
                  .tasks_per_model = static_cast<size_t>(words->Integer("tasks-per-model")),
                  .random = static_cast<size_t>(words->Integer("random"))};
  if (options.target.empty()) options.target = fmt::format("cpu:native,threads={}", UsableCores());
  if (options.measure || options.regret || !options.score.empty() || !options.replay.empty() ||
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
