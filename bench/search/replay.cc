#include "bench/search/replay.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/core/random.h"
#include "base/status.h"
#include "costmodel/features.h"
#include "costmodel/xgboost_model.h"

namespace hone::bench {
namespace {

constexpr size_t kBatch = 8;          ///< as search::Tuner proposes for one task
constexpr size_t kRowsPerModel = 24;  ///< as search::TuningSession trains

absl::StatusOr<std::vector<costmodel::Prediction>> TrainAndScore(
    const std::vector<costmodel::TrainingTask>& tasks, const costmodel::FeatureRows& rows,
    uint64_t seed) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, costmodel::XgboostModel::Train(tasks, seed));
  HONE_ASSIGN_OR_RETURN(const auto model, costmodel::XgboostModel::Load(bytes));
  return model->Predict(rows);
}

/// A pool with what the models need of it.
struct Task {
  costmodel::FeatureRows features;
  std::vector<double> ns, analytic;  ///< ns 0: failed
  double best_ns = 0;
  std::string kernel, operators;  ///< operators with shape, and without

  costmodel::TrainingTask Rows(const std::vector<size_t>& which) const {
    costmodel::TrainingTask out;
    double best = 0;
    for (const size_t i : which) {
      if (ns[i] > 0 && (best == 0 || ns[i] < best)) best = ns[i];
    }
    for (const size_t i : which) {
      out.features.push_back(features[i]);
      out.labels.push_back(ns[i] > 0 ? static_cast<float>(best / ns[i]) : 0.0F);
    }
    return out;
  }
};

Task TaskOf(const Pool& pool) {
  const costmodel::FeatureExtractor extractor(*pool.space);
  Task task;
  for (const Pool::Row& r : pool.rows) {
    task.features.push_back(extractor.Extract(r.id));
    task.ns.push_back(r.median_ns);
    task.analytic.push_back(-extractor.AnalyticSeconds(r.id));
  }
  task.best_ns = pool.BestNs();
  // MODEL/number: operators shape
  const size_t begin = pool.name.find(": ");
  task.kernel = begin == std::string::npos ? pool.name : pool.name.substr(begin + 2);
  task.operators = task.kernel.substr(0, task.kernel.rfind(' '));
  return task;
}

std::vector<size_t> AllOf(const Task& task) {
  std::vector<size_t> all(task.ns.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

/// One search of one pool.
class PoolSearch {
 public:
  PoolSearch(const Task& task, double target_share, uint64_t seed)
      : task_(task), good_ns_(task.best_ns / target_share), random_(seed) {}

  /// Trials used until a good candidate was met, with `scores` for all candidates, which `again`
  /// may renew after a batch.
  template <typename Again>
  absl::StatusOr<double> Run(bool spread, std::vector<costmodel::Prediction> scores,
                             const Again& again) {
    seen_.assign(task_.ns.size(), false);
    while (measured_.size() < task_.ns.size()) {
      const size_t begin = measured_.size();
      const size_t daring = spread ? 1 : 0;
      for (size_t k = 0; k + 1 + daring < kBatch; ++k)
        Take(scores, [](const costmodel::Prediction& p) { return p.mean; });
      if (spread) Take(scores, [](const costmodel::Prediction& p) { return p.mean + p.spread; });
      TakeRandom();
      for (size_t i = begin; i < measured_.size(); ++i) {
        const double ns = task_.ns[measured_[i]];
        if (ns > 0 && ns <= good_ns_) return static_cast<double>(i + 1);
      }
      HONE_RETURN_IF_ERROR(again(measured_, &scores));
    }
    return absl::InternalError("a pool without its own best");
  }

 private:
  template <typename Score>
  void Take(const std::vector<costmodel::Prediction>& scores, const Score& score) {
    size_t best = seen_.size();
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (!seen_[i] && (best == seen_.size() || score(scores[i]) > score(scores[best]))) best = i;
    }
    Mark(best);
  }
  void TakeRandom() {
    std::vector<size_t> left;
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (!seen_[i]) left.push_back(i);
    }
    if (!left.empty()) Mark(random_.Pick(left));
  }
  void Mark(size_t i) {
    if (i >= seen_.size()) return;
    seen_[i] = true;
    measured_.push_back(i);
  }

  const Task& task_;
  double good_ns_;
  Random random_;
  std::vector<bool> seen_;
  std::vector<size_t> measured_;
};

absl::StatusOr<double> ModelTrials(const std::vector<Task>& tasks, size_t held_out,
                                   const ReplayOptions& options, uint64_t seed) {
  const Task& task = tasks[held_out];
  std::vector<costmodel::TrainingTask> rows;
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].kernel == task.kernel) continue;  // two models may hold the same kernel
    if (!options.same_operators && tasks[t].operators == task.operators) continue;
    rows.push_back(tasks[t].Rows(AllOf(tasks[t])));
  }
  HONE_ASSIGN_OR_RETURN(auto scores, TrainAndScore(rows, task.features, seed));
  size_t trained = 0;
  const auto again = [&](const std::vector<size_t>& measured,
                         std::vector<costmodel::Prediction>* renewed) -> absl::Status {
    if (measured.size() < trained + kRowsPerModel) return absl::OkStatus();
    trained = measured.size();
    rows.push_back(task.Rows(measured));
    auto next = TrainAndScore(rows, task.features, seed);
    rows.pop_back();
    HONE_ASSIGN_OR_RETURN(*renewed, std::move(next));
    return absl::OkStatus();
  };
  return PoolSearch(task, options.target_share, seed).Run(true, std::move(scores), again);
}

absl::StatusOr<double> AnalyticTrials(const Task& task, double target_share, uint64_t seed) {
  std::vector<costmodel::Prediction> scores;
  // Ranks, not seconds: a float of seconds would make near ones equal.
  std::vector<size_t> order = AllOf(task);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return task.analytic[i]; });
  scores.resize(order.size());
  for (size_t r = 0; r < order.size(); ++r) scores[order[r]].mean = static_cast<float>(r);
  const auto keep = [](const std::vector<size_t>&, std::vector<costmodel::Prediction>*) {
    return absl::OkStatus();
  };
  return PoolSearch(task, target_share, seed).Run(false, std::move(scores), keep);
}

double Mean(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

/// Geometric mean over tasks of a / b, where a and b give a task's mean trials from drawn seeds.
template <typename A, typename B>
Interval RatioOf(const std::vector<ReplayedTask>& tasks, int resamples, const A& a, const B& b) {
  Interval out;
  Random random(1);
  std::vector<double> drawn;
  for (int r = -1; r < resamples; ++r) {
    double sum = 0;
    for (size_t k = 0; k < tasks.size(); ++k) {
      const ReplayedTask& t = r < 0 ? tasks[k] : random.Pick(tasks);
      const auto mean = [&](const std::vector<double>& v) {
        if (r < 0) return Mean(v);
        double total = 0;
        for (size_t i = 0; i < v.size(); ++i) total += random.Pick(v);
        return total / static_cast<double>(v.size());
      };
      sum += std::log(mean(a(t)) / mean(b(t)));
    }
    const double ratio = std::exp(sum / static_cast<double>(tasks.size()));
    if (r < 0) {
      out.value = ratio;
    } else {
      drawn.push_back(ratio);
    }
  }
  std::ranges::sort(drawn);
  out.low = drawn[drawn.size() * 25 / 1000];
  out.high = drawn[drawn.size() * 975 / 1000];
  return out;
}

}  // namespace

absl::StatusOr<ReplayReport> Replay(const std::vector<Pool>& pools, const ReplayOptions& options) {
  ReplayReport report;
  std::vector<Task> tasks;
  for (const Pool& pool : pools) {
    if (pool.BestNs() <= 0) return absl::InvalidArgumentError(pool.name + ": nothing was measured");
    tasks.push_back(TaskOf(pool));
    ReplayedTask t;
    t.name = pool.name;
    t.candidates = pool.rows.size();
    for (const Pool::Row& r : pool.rows)
      t.good += r.median_ns > 0 && r.median_ns <= pool.BestNs() / options.target_share;
    t.random = (static_cast<double>(t.candidates) + 1) / (static_cast<double>(t.good) + 1);
    t.model.resize(static_cast<size_t>(options.seeds));
    t.analytic.resize(static_cast<size_t>(options.seeds));
    report.tasks.push_back(std::move(t));
  }
  const size_t jobs = tasks.size() * static_cast<size_t>(options.seeds);
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  absl::Status status;  // guarded by mutex
  const auto work = [&] {
    for (size_t j = next++; j < jobs; j = next++) {
      const size_t t = j % tasks.size(), seed = j / tasks.size();
      const auto model = ModelTrials(tasks, t, options, seed);
      const auto analytic = AnalyticTrials(tasks[t], options.target_share, seed);
      const std::lock_guard lock(mutex);
      status.Update(model.status());
      status.Update(analytic.status());
      if (!status.ok()) return;
      report.tasks[t].model[seed] = *model;
      report.tasks[t].analytic[seed] = *analytic;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < std::max(1, options.threads); ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  HONE_RETURN_IF_ERROR(status);
  const auto random = [](const ReplayedTask& t) { return std::vector<double>{t.random}; };
  const auto model = [](const ReplayedTask& t) { return t.model; };
  const auto analytic = [](const ReplayedTask& t) { return t.analytic; };
  report.model_over_random = RatioOf(report.tasks, options.resamples, random, model);
  report.analytic_over_random = RatioOf(report.tasks, options.resamples, random, analytic);
  report.model_over_analytic = RatioOf(report.tasks, options.resamples, analytic, model);
  return report;
}

}  // namespace hone::bench
