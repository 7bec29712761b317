#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "base/core/hash128.h"
#include "base/core/random.h"
#include "costmodel/features.h"
#include "costmodel/xgboost_model.h"
#include "measure/outcome.h"
#include "schedule/space.h"
#include "search/part_screening.h"

namespace hone::search {

/// Who proposed a candidate. Stored in logs by name: do not rename.
enum class Proposer : uint8_t { kDefault, kTransplant, kModel, kUncertainty, kNeighbour, kRandom };
inline constexpr int kNumProposers = 6;
std::string_view ProposerName(Proposer proposer);
std::optional<Proposer> ParseProposer(std::string_view name);

/// The search of one Space: which points were tried, how fast they were, and what to try next. No
/// clock, no I/O; the same calls give the same proposals. Not thread-safe.
class TaskSearch {
 public:
  TaskSearch(std::shared_ptr<const schedule::Space> space, uint64_t seed,
             int min_stale = kMinStale, bool evolve = true);

  struct Proposal {
    uint64_t id = 0;
    Proposer proposer = Proposer::kRandom;
    std::string trace;  ///< its text
  };
  /// At most n new points, whose Traces are new too in Spaces of up to kMostCompared points;
  /// fewer when the Space is exhausted. The first is the default schedule, then
  /// transplants: those added before and `hints` (ids of this Space), once each. Without a model
  /// the analytic model ranks. Most slots exploit, some explore where the bag disagrees, some are
  /// random (the unbiased check), and the one-step neighbours of the incumbent always compete.
  std::vector<Proposal> Propose(int n, const costmodel::XgboostModel* model,
                                const std::vector<uint64_t>& hints = {});
  /// To be called when the model that Propose gets is another one, even at the same address. A
  /// Space too large to score whole is evolved anew from what is best just then.
  void ModelChanged();
  /// Marks a point as proposed (a replayed proposal).
  void MarkProposed(uint64_t id, Proposer proposer);
  /// A result; any order. Latency is used when the outcome is ok; infrastructure faults put the
  /// point back.
  /// `part`: of one that began on a part of the work.
  struct OnPart {
    double part_ns = 0;  ///< what the part says of a whole run; 0: no part was run
    bool whole = true;   ///< the whole was run, too: else the latency is but expected
  };
  void Report(uint64_t id, measure::Outcome outcome, double median_ns, const OnPart& part);
  void Report(uint64_t id, measure::Outcome outcome, double median_ns) {
    Report(id, outcome, median_ns, OnPart());
  }
  /// What a comparison in turns says of the default and the best: a screening, above all the first
  /// one of a session, may have met a machine that was busy.
  void SetCompared(double default_ns, double best_ns) {
    default_ns_ = default_ns;
    best_ns_ = best_ns;
  }
  /// A point worth an early trial: a record's, or a near record's moved here.
  void AddTransplant(uint64_t id);
  const schedule::Space& space() const { return *space_; }
  std::shared_ptr<const schedule::Space> shared_space() const { return space_; }
  std::optional<uint64_t> best() const { return best_; }
  double best_ns() const { return best_ns_; }
  double default_ns() const { return default_ns_; }
  int trials() const { return static_cast<int>(answers_.size()); }
  int proposed() const { return static_cast<int>(seen_.size()); }
  /// The last Propose found too few: all that can be lowered and mean something new were proposed.
  bool exhausted() const { return exhausted_; }
  /// Nothing more is expected: as many candidates again as it took to find the best (and
  /// min_stale at least) were measured since, and none was better by kNoticeable.
  bool settled() const;
  /// A Space with more points than this is not scored whole: a sample of it is, and evolution goes
  /// on from there.
  static constexpr uint64_t kMostPoints = 1 << 18;
  /// In larger ones different decisions that mean the same schedule may all be tried.
  static constexpr uint64_t kMostCompared = 2048;
  static constexpr int kMinStale = 128;
  static constexpr double kNoticeable = 1.01;
  /// Best latency after each result, in the order of results.
  const std::vector<double>& history() const { return history_; }
  /// As it was measured; 0: it was not, or failed.
  double MedianNs(uint64_t id) const {
    const auto found = seen_.find(id);
    if (found == seen_.end() || found->second.answer < 0) return 0;
    return answers_[static_cast<size_t>(found->second.answer)].median_ns;
  }
  /// The analytic model's time of a point, ns.
  double PredictedNs(uint64_t id) const { return 1e9 * extractor_.AnalyticSeconds(id); }
  /// The fastest measured points, best first. `parts`: those too of which only a part was run.
  std::vector<uint64_t> Top(int n, bool parts = false) const;
  /// Points of which only a part was run and that are expected to take less than kNearBest times
  /// the best, best first.
  std::vector<uint64_t> NearBestOnPart(int n) const;
  static constexpr double kNearBest = 1.03;
  /// What a comparison in turns decides between: the default, the fastest that ran whole, at most
  /// `whole`, and those that a part of the work calls as fast. Empty when nothing ran whole.
  std::vector<uint64_t> Finalists(int whole) const;
  /// A machine that is twice as fast for moments screens slow candidates as the fastest: the more
  /// finalists the better, as long as there is time.
  static constexpr int kMostFinalists = 8, kLeastFinalists = 3;
  /// Which result was this point's, from 1; 0: it has none.
  int TrialOf(uint64_t id) const {
    const auto found = seen_.find(id);
    return found == seen_.end() ? 0 : found->second.answer + 1;
  }
  const PartScreening& parts() const { return parts_; }
  /// How many results rest on a part of the work.
  int on_part() const { return on_part_; }
  /// Rows for the cost model: throughput relative to the best; own faults 0. At most `most`: the
  /// best half of that, and of the others some from every part of the search.
  costmodel::TrainingTask TrainingRows(int most = kMostTrainingRows) const;
  static constexpr int kMostTrainingRows = 1 << 14;
  /// Spearman correlation of what was thought of randomly proposed points when they were proposed
  /// (their places in the ranking, before any model had learnt from them) with their speed; nothing
  /// below four of them. Points that an earlier run of the session proposed are not counted.
  std::optional<double> RankCorrelationOnRandom() const;
  /// Results that were not ok, by outcome.
  std::map<measure::Outcome, int64_t> failures() const;
  /// Points that were illegal, in the order of their answers.
  std::vector<uint64_t> Illegal() const;
  struct ProposerCount {
    int candidates = 0;
    int wins = 0;  ///< improved the best
  };
  const std::map<Proposer, ProposerCount>& counts() const { return counts_; }

 private:
  // A farm's search remembers every candidate of a session for as long as it goes on: what is kept
  // of one is flat and small.
  struct Answer {
    uint64_t id = 0;
    double median_ns = 0;
    measure::Outcome outcome = measure::Outcome::kOk;
    Proposer proposer = Proposer::kRandom;
    bool whole = true;
  };
  struct Seen {
    Proposer proposer = Proposer::kRandom;
    int32_t answer = -1;  ///< in answers_
  };
  /// What is known of the Trace of one of points_, in Spaces that compare Traces.
  struct PointTrace {
    Hash128 hash;  ///< zero: it cannot be lowered
    /// The first of points_ whose Trace, lowered before, is the same; kUnknown: not lowered yet.
    uint32_t first = kUnknown;
    /// Kept for the first point of a Trace: which of the points with that Trace was proposed.
    uint32_t proposed = kUnknown;
    static constexpr uint32_t kUnknown = UINT32_MAX;
  };
  /// Scores of all points under one model, and the points by falling score. A place below
  /// points_.size() is one of points_, others are of `evolved`.
  struct Ranking {
    const costmodel::XgboostModel* model = nullptr;
    bool made = false;
    std::vector<uint64_t> evolved;
    std::vector<float> score, daring;                ///< mean; mean and spread
    std::vector<uint32_t> best_first, daring_first;  ///< by score; by daring
  };

  /// Chooses the points when they are first needed.
  void NeedPoints();
  /// In points_; nothing for what is beyond a sample, and before they are chosen.
  std::optional<uint32_t> PlaceOf(uint64_t id) const;
  void Mark(uint64_t id, Proposer proposer);
  /// Whether Traces are compared, too.
  bool Compares();
  /// Marks a point as proposed if it and its Trace are new. To lower a point to its Trace takes a
  /// good part of what it takes to rank hundreds: only those about to be proposed are.
  bool Take(uint64_t id, Proposer proposer, std::vector<Proposal>* out);
  /// Makes the Traces of points that an earlier run proposed.
  void NeedTracesOfSeen();
  /// The Trace's text; nothing for a point that cannot be lowered, which is noted.
  std::optional<std::string> TraceText(uint64_t id);
  /// The Trace of a place, `text`, is known from now on.
  void NoteTrace(uint32_t place, const std::optional<std::string>& text);
  /// The one that stands for all with this place's Trace; lowers it where that was not done.
  PointTrace& FirstWithTrace(uint32_t place);
  const Ranking& Rank(const costmodel::XgboostModel* model);
  /// Scores of points by the trees, or without them (or where they fail) by the analytic model.
  void ScoreInto(const costmodel::XgboostModel* model, std::span<const uint64_t> ids,
                 std::vector<float>* score, std::vector<float>* daring) const;
  /// Adds points that evolution finds beyond the sample to the ranking.
  void EvolveInto(const costmodel::XgboostModel* model, Ranking* ranking) const;
  uint64_t RankedPoint(const Ranking& ranking, uint32_t place) const {
    return place < points_.size() ? points_[place] : ranking.evolved[place - points_.size()];
  }
  /// Unseen neighbours of the incumbents, most promising first.
  std::vector<uint64_t> NearIncumbents(const Ranking& ranking,
                                       const costmodel::XgboostModel* model) const;

  std::shared_ptr<const schedule::Space> space_;
  costmodel::FeatureExtractor extractor_;
  Random random_;
  const int min_stale_;
  const bool evolve_;  ///< beyond a sample
  uint64_t proposals_ = 0;  ///< made so far, replayed ones included
  /// Admitted; of a Space with more than kMostPoints a stratified sample. The default's first, then
  /// by id. Empty until they are needed.
  std::vector<uint64_t> points_;
  /// By place, where Traces are compared and once one was.
  std::vector<PointTrace> traces_;
  absl::flat_hash_set<uint64_t> unlowerable_;
  std::vector<uint64_t> replayed_;  ///< seen, perhaps not lowered here yet
  std::optional<bool> compares_;
  bool exhausted_ = false;
  Ranking ranking_;
  std::vector<uint64_t> ancestors_;  ///< the best measured points when the model changed
  size_t results_at_model_ = 0;
  absl::flat_hash_map<uint64_t, Seen> seen_;
  /// Random points: how many points scored lower when they were proposed.
  absl::flat_hash_map<uint64_t, double> expected_;
  std::vector<Answer> answers_;  ///< in the order in which they came
  PartScreening parts_;
  int on_part_ = 0;
  std::vector<uint64_t> transplants_;
  std::optional<uint64_t> best_;
  double best_ns_ = 0;
  double default_ns_ = 0;
  std::vector<double> history_;
  int last_gain_ = 0;  ///< results at the last noticeable improvement
  double noticed_ns_ = 0;
  std::map<Proposer, ProposerCount> counts_;
};

}  // namespace hone::search
