#include "bench/search/regret.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>

#include "base/core/random.h"
#include "base/status.h"
#include "bench/search/measured_pool.h"
#include "bench/task_tuning.h"
#include "db/memory_database.h"
#include "measure/local_measurer.h"
#include "schedule/space.h"
#include "schedule/trace.h"
#include "search/task_search.h"

namespace hone::bench {
namespace {

constexpr size_t kReferences = 20;
constexpr double kGoodShare = 0.95;
constexpr int kResamples = 4000;

Interval Resampled(size_t count, const std::function<double(const std::vector<size_t>&)>& of) {
  std::vector<size_t> drawn(count);
  std::iota(drawn.begin(), drawn.end(), size_t{0});
  Interval out{.value = of(drawn)};
  Random random(1);
  std::vector<double> values;
  for (int r = 0; r < kResamples; ++r) {
    for (size_t& k : drawn) k = random.Below(count);
    values.push_back(of(drawn));
  }
  std::ranges::sort(values);
  out.low = values[values.size() * 25 / 1000];
  out.high = values[values.size() * 975 / 1000];
  return out;
}

/// Facts of a log that warm another one's searches up.
absl::Status AddRecords(db::Database& from, db::Database& to) {
  db::Batch batch;
  const auto collect = [](auto& list) {
    return [&list](const auto& fact) {
      list.push_back(fact);
      return absl::OkStatus();
    };
  };
  HONE_RETURN_IF_ERROR(from.ScanWorkloads(collect(batch.workloads)));
  HONE_RETURN_IF_ERROR(from.ScanDevices(collect(batch.devices)));
  HONE_RETURN_IF_ERROR(from.ScanSessions([&](const db::StoredSession& s) {
    batch.sessions.push_back(s.session);
    return absl::OkStatus();
  }));
  HONE_RETURN_IF_ERROR(from.ScanRecords({}, [&](const db::RankedRecord& r) {
    batch.records.push_back(r.record);
    return absl::OkStatus();
  }));
  return to.Append(batch).status();
}

/// Everything that was measured of one task.
struct Searched {
  std::vector<double> random;            ///< screened times of the random search, rising
  std::vector<std::string> references;   ///< its best Traces, best first
  std::vector<std::vector<TunedTask>> by_variant;  ///< by variant and seed
};

/// A latency in turns over that of the default in the same turns; 0: it failed.
struct Latency {
  double chosen_by = 0;
  double measured = 0;
};
using Latencies = std::map<std::string, Latency>;  ///< by Trace

/// The searches that are compared, but for the random one.
enum Variant { kSearch, kNoWarmStart, kNoTrees, kNoEvolution, kNumVariants };
constexpr const char* kNames[] = {"search", "no warm start", "no trees", "no evolution", "random"};

class Regrets {
 public:
  Regrets(const std::vector<ModelTask>& tasks, const ir::Target& target,
          const RegretOptions& options, const MonotonicClock& clock)
      : tasks_(tasks),
        target_(target),
        options_(options),
        clock_(clock),
        measuring_(MeasurerOptionsFor(target)),
        searched_(tasks.size()),
        logs_(tasks.size()) {}

  absl::StatusOr<RegretReport> Run() {
    for (const char* const name : kNames) {
      report_.variants.push_back({.name = name, .regret = {}, .trials = {}});
      report_.variants.back().regret.resize(options_.checkpoints.size());
    }
    // Cold searches of all first: their records warm those of the others up.
    for (size_t t = 0; t < tasks_.size(); ++t) HONE_RETURN_IF_ERROR(SearchCold(t));
    for (size_t t = 0; t < tasks_.size(); ++t) {
      HONE_RETURN_IF_ERROR(SearchWarm(t));
      HONE_RETURN_IF_ERROR(SearchAtRandom(t));
      HONE_RETURN_IF_ERROR(Compare(t));
    }
    return std::move(report_);
  }

 private:
  absl::Status Search(size_t t, Variant variant, db::Database& log, int seed) {
    HONE_ASSIGN_OR_RETURN(TunedTask tuned,
                          TuneTask(tasks_[t].workload, target_, measuring_,
                                   {.trials = options_.checkpoints.back(),
                                    .seed = static_cast<uint64_t>(seed),
                                    .trees = variant != kNoTrees,
                                    .evolve = variant != kNoEvolution,
                                    .checkpoints = options_.checkpoints},
                                   log, clock_));
    searched_[t].by_variant[variant].push_back(std::move(tuned));
    return absl::OkStatus();
  }

  schedule::Space SpaceOf(size_t t) const {
    return schedule::Space(*tasks_[t].workload, target_, ir::AccuracyClass::kDefault);
  }

  absl::Status SearchCold(size_t t) {
    searched_[t].by_variant.resize(kNumVariants);
    for (int seed = 0; seed < options_.seeds; ++seed) {
      db::MemoryDatabase other, empty;
      HONE_RETURN_IF_ERROR(Search(t, kNoWarmStart, seed == 0 ? logs_[t] : other, seed));
      HONE_RETURN_IF_ERROR(Search(t, kNoTrees, empty, seed));
    }
    return absl::OkStatus();
  }

  absl::Status SearchWithRecords(size_t t, Variant variant, int seed) {
    db::MemoryDatabase log;
    for (size_t other = 0; other < tasks_.size(); ++other) {
      if (other != t) HONE_RETURN_IF_ERROR(AddRecords(logs_[other], log));
    }
    return Search(t, variant, log, seed);
  }

  absl::Status SearchWarm(size_t t) {
    const bool evolves = SpaceOf(t).product() > search::TaskSearch::kMostPoints;
    auto& found = searched_[t].by_variant;
    for (int seed = 0; seed < options_.seeds; ++seed) {
      HONE_RETURN_IF_ERROR(SearchWithRecords(t, kSearch, seed));
      if (evolves) {
        HONE_RETURN_IF_ERROR(SearchWithRecords(t, kNoEvolution, seed));
      } else {
        found[kNoEvolution].push_back(found[kSearch].back());  // scored whole: the same search
      }
    }
    return absl::OkStatus();
  }

  absl::Status SearchAtRandom(size_t t) {
    const auto most = std::min<uint64_t>(options_.random, SpaceOf(t).product());
    HONE_ASSIGN_OR_RETURN(Pool pool, MeasurePool(tasks_[t], target_, most, clock_));
    std::erase_if(pool.rows, [](const Pool::Row& row) { return row.median_ns <= 0; });
    std::ranges::sort(pool.rows, {}, &Pool::Row::median_ns);
    for (const Pool::Row& row : pool.rows) {
      searched_[t].random.push_back(row.median_ns);
      if (searched_[t].references.size() >= kReferences) continue;
      HONE_ASSIGN_OR_RETURN(const schedule::Trace trace, pool.space->TraceOf(row.id));
      searched_[t].references.push_back(schedule::ToText(trace));
    }
    return absl::OkStatus();
  }

  /// Latencies of all Traces that matter of a task.
  absl::StatusOr<Latencies> Timed(size_t t) {
    const schedule::Space space = SpaceOf(t);
    HONE_ASSIGN_OR_RETURN(const schedule::Trace fallback, space.TraceOf(space.DefaultId()));
    const std::string reference = schedule::ToText(fallback);
    std::vector<std::string> traces = searched_[t].references;
    for (const auto& variant : searched_[t].by_variant) {
      for (const TunedTask& tuned : variant) {
        for (const auto& finalists : tuned.finalists_at) {
          for (const TunedTask::Finalist& f : finalists) traces.push_back(f.trace);
        }
      }
    }
    std::ranges::sort(traces);
    traces.erase(std::ranges::unique(traces).begin(), traces.end());
    std::erase(traces, reference);
    Latencies latencies;
    constexpr size_t kAtOnce = measure::Measurer::kMaxCompared - 2;
    for (size_t begin = 0; begin < traces.size(); begin += kAtOnce) {
      const size_t end = std::min(begin + kAtOnce, traces.size());
      std::vector<std::string> turn(traces.begin() + static_cast<std::ptrdiff_t>(begin),
                                    traces.begin() + static_cast<std::ptrdiff_t>(end));
      turn.insert(turn.begin(), reference);
      HONE_RETURN_IF_ERROR(TimeInTurns(t, turn, &latencies));
    }
    return latencies;
  }

  /// The first of the Traces is the default.
  absl::Status TimeInTurns(size_t t, const std::vector<std::string>& traces,
                           Latencies* latencies) {
    std::vector<measure::MeasureInput> inputs;
    for (const std::string& trace : traces) {
      inputs.push_back({.id = static_cast<int64_t>(inputs.size()),
                        .workload = tasks_[t].workload,
                        .target = target_.text,
                        .trace = trace,
                        .kind = measure::MeasureKind::kFinal});
    }
    measure::LocalMeasurer measurer(measuring_, clock_);
    const auto compared = measurer.Compare(inputs, options_.rounds);
    std::vector<Latency> ns;
    for (const measure::ComparedTrace& c : compared) ns.push_back(ByRounds(c.samples_ns));
    if (ns.size() != traces.size() || ns.front().measured <= 0)
      return absl::InternalError(tasks_[t].name + ": its default did not run in turns");
    for (size_t k = 0; k < ns.size(); ++k) {
      (*latencies)[traces[k]] = {ns[k].chosen_by / ns.front().chosen_by,
                                 ns[k].measured / ns.front().measured};
    }
    return absl::OkStatus();
  }

  /// Every other round chooses and the rest measure, so that no choice rests on its own luck.
  static Latency ByRounds(const std::vector<int64_t>& samples_ns) {
    std::vector<int64_t> even, odd;
    for (size_t r = 0; r < samples_ns.size(); ++r)
      (r % 2 == 0 ? even : odd).push_back(samples_ns[r]);
    return {static_cast<double>(measure::MedianNs(std::move(even))),
            static_cast<double>(measure::MedianNs(std::move(odd)))};
  }

  absl::Status Compare(size_t t) {
    const Searched& searched = searched_[t];
    HONE_ASSIGN_OR_RETURN(const Latencies latencies, Timed(t));
    Latency best{1, 1};  // the default
    for (const auto& [trace, latency] : latencies)
      if (latency.measured > 0 && latency.chosen_by < best.chosen_by) best = latency;
    const std::vector<double> drawn = Drawn(searched, latencies);
    report_.tasks.push_back(tasks_[t].name);
    for (int v = 0; v < kNumVariants; ++v)
      AddVariant(v, searched.by_variant[v], latencies, best.measured);
    RegretOfVariant& random = report_.variants.back();
    for (size_t c = 0; c < options_.checkpoints.size(); ++c) {
      const size_t n = std::min<size_t>(options_.checkpoints[c], drawn.size());
      random.regret[c].push_back(ExpectedBest(drawn, n) / best.measured - 1);
    }
    const auto within =
        std::ranges::count_if(drawn, [&](double d) { return d <= best.measured / kGoodShare; });
    random.trials.push_back((static_cast<double>(drawn.size()) + 1) /
                            (static_cast<double>(within) + 1));
    std::string line = fmt::format("{:44}", tasks_[t].name);
    for (const RegretOfVariant& v : report_.variants) {
      for (const auto& regret : v.regret) line += fmt::format(" {:6.1f}", 100 * regret.back());
      line += fmt::format(" {:6.0f} |", v.trials.back());
    }
    std::cout << line << std::endl;
    return absl::OkStatus();
  }

  /// The random candidates' measured latencies, the one that is chosen before all others first.
  /// Those that did not run in turns have scaled ones: screened times are those of other minutes,
  /// and the least of many is too small.
  static std::vector<double> Drawn(const Searched& searched, const Latencies& latencies) {
    std::vector<Latency> drawn;
    std::vector<double> scales;
    for (size_t k = 0; k < searched.references.size(); ++k) {
      const Latency& latency = latencies.at(searched.references[k]);
      if (latency.measured <= 0) continue;
      drawn.push_back(latency);
      scales.push_back(latency.measured / searched.random[k]);
    }
    std::ranges::sort(scales);
    const double scale = scales.empty() ? 1 : scales[scales.size() / 2];
    for (size_t k = searched.references.size(); k < searched.random.size(); ++k)
      drawn.push_back({scale * searched.random[k], scale * searched.random[k]});
    std::ranges::stable_sort(drawn, {}, &Latency::chosen_by);
    std::vector<double> measured;
    for (const Latency& latency : drawn) measured.push_back(latency.measured);
    return measured;
  }

  /// The fastest finalist, as `hone tune` keeps it where its gain is clear; the default where no
  /// other runs.
  static TunedTask::Finalist Chosen(const std::vector<TunedTask::Finalist>& finalists,
                                    const Latencies& latencies, Latency* latency) {
    TunedTask::Finalist chosen;
    *latency = {1, 1};
    for (const TunedTask::Finalist& f : finalists) {
      const Latency& its = latencies.at(f.trace);
      if (its.measured > 0 && its.chosen_by < latency->chosen_by) *latency = its, chosen = f;
    }
    return chosen;
  }

  void AddVariant(int v, const std::vector<TunedTask>& seeds, const Latencies& latencies,
                  double best) {
    RegretOfVariant& variant = report_.variants[static_cast<size_t>(v)];
    const auto count = static_cast<double>(seeds.size());
    std::vector<double> regret(options_.checkpoints.size(), 0);
    double trials = 0;
    for (const TunedTask& tuned : seeds) {
      double first = options_.checkpoints.back();
      for (size_t c = regret.size(); c-- > 0;) {
        Latency latency;
        const TunedTask::Finalist chosen = Chosen(tuned.finalists_at[c], latencies, &latency);
        regret[c] += latency.measured / best - 1;
        if (latency.measured <= best / kGoodShare) first = std::max(1, chosen.trial);
      }
      trials += first;
    }
    for (size_t c = 0; c < regret.size(); ++c) variant.regret[c].push_back(regret[c] / count);
    variant.trials.push_back(trials / count);
  }

  const std::vector<ModelTask>& tasks_;
  const ir::Target& target_;
  const RegretOptions& options_;
  const MonotonicClock& clock_;
  const measure::LocalMeasurerOptions measuring_;
  std::vector<Searched> searched_;        ///< by task
  std::vector<db::MemoryDatabase> logs_;  ///< by task: of a search that began from nothing
  RegretReport report_;
};

}  // namespace

Interval QuantileOf(const std::vector<double>& values, double quantile) {
  return Resampled(values.size(), [&](const std::vector<size_t>& drawn) {
    std::vector<double> sample;
    for (const size_t k : drawn) sample.push_back(values[k]);
    std::ranges::sort(sample);
    const double place = quantile * static_cast<double>(sample.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, sample.size() - 1);
    const double part = place - static_cast<double>(below);
    return (1 - part) * sample[below] + part * sample[above];
  });
}

Interval GeometricMeanOf(const std::vector<double>& a, const std::vector<double>& b) {
  return Resampled(a.size(), [&](const std::vector<size_t>& drawn) {
    double sum = 0;
    for (const size_t k : drawn) sum += std::log(a[k] / b[k]);
    return std::exp(sum / static_cast<double>(drawn.size()));
  });
}

double ExpectedBest(const std::vector<double>& ranked, size_t n) {
  const auto count = static_cast<double>(ranked.size()), drawn = static_cast<double>(n);
  double expected = 0, none_before = 1;  // the chance that none of those before was drawn
  for (size_t k = 0; k < ranked.size() && none_before > 0; ++k) {
    const double left = count - static_cast<double>(k);
    const double here = std::min(1.0, drawn / left);
    expected += none_before * here * ranked[k];
    none_before *= 1 - here;
  }
  return expected;
}

absl::StatusOr<RegretReport> MeasureRegret(const std::vector<ModelTask>& tasks,
                                           const ir::Target& target, const RegretOptions& options,
                                           const MonotonicClock& clock) {
  return Regrets(tasks, target, options, clock).Run();
}

}  // namespace hone::bench
