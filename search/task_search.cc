#include "search/task_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace hone::search {

namespace {
constexpr std::array<std::string_view, kNumProposers> kNames = {
    "default", "transplant", "model", "uncertainty", "neighbour", "random"};
/// A Space with more points than this is sampled: scoring stays well under a second.
constexpr uint64_t kMostPoints = 1 << 18;
/// Up to this many points are compared by their Traces: different decisions may mean the same
/// schedule.
constexpr uint64_t kMostCompared = 4096;
constexpr float kKappa = 1.0F;  ///< weight of the bag's spread in exploration slots

bool OwnFault(measure::Outcome o) {
  return o != measure::Outcome::kOk && o != measure::Outcome::kWorkerLost;
}
}  // namespace

std::string_view ProposerName(Proposer proposer) { return kNames[static_cast<size_t>(proposer)]; }

std::optional<Proposer> ParseProposer(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Proposer>(i);
  }
  return std::nullopt;
}

TaskSearch::TaskSearch(std::shared_ptr<const schedule::Space> space, uint64_t seed)
    : space_(std::move(space)), extractor_(*space_), random_(seed) {
  const uint64_t product = space_->product();
  const uint64_t step = std::max<uint64_t>(1, product / kMostPoints);
  points_.push_back(space_->DefaultId());
  for (uint64_t id = 0; id < product; id += step) {
    if (id != space_->DefaultId() && space_->Admits(id)) points_.push_back(id);
  }
  if (points_.size() <= kMostCompared) DropEqualTraces();
  for (uint64_t id : points_) {
    features_.push_back(extractor_.Extract(id));
    analytic_.push_back(static_cast<float>(-std::log(extractor_.AnalyticSeconds(id))));
  }
}

void TaskSearch::DropEqualTraces() {
  std::unordered_set<Hash128> seen;
  std::erase_if(points_, [&](uint64_t id) {
    auto trace = space_->TraceOf(id);
    return !trace.ok() || !seen.insert(HashBytes(schedule::ToText(*trace))).second;
  });
}

std::vector<float> TaskSearch::Scores(const costmodel::XgboostModel* model,
                                      std::vector<float>* spread) const {
  spread->assign(points_.size(), 0);
  if (model) {
    auto predicted = model->Predict(features_);
    if (predicted.ok()) {
      std::vector<float> out;
      for (size_t i = 0; i < predicted->size(); ++i) {
        out.push_back((*predicted)[i].mean);
        (*spread)[i] = (*predicted)[i].spread;
      }
      return out;
    }
  }
  return analytic_;
}

void TaskSearch::AddTransplant(const std::string& trace_text) {
  for (uint64_t id : points_) {
    auto trace = space_->TraceOf(id);
    if (!trace.ok() || schedule::ToText(*trace) != trace_text) continue;
    if (std::find(transplants_.begin(), transplants_.end(), id) == transplants_.end())
      transplants_.push_back(id);
    return;
  }
}

void TaskSearch::MarkProposed(uint64_t id, Proposer proposer) {
  ++proposals_;
  if (!seen_.emplace(id, proposer).second) return;
  counts_[proposer].candidates++;
}

std::vector<TaskSearch::Proposal> TaskSearch::Propose(int n, const costmodel::XgboostModel* model) {
  std::vector<Proposal> out;
  // The stream depends on what was proposed before, so that a replayed search goes on equally.
  Random random = random_.Fork(proposals_);
  auto take = [&](uint64_t id, Proposer p) {
    if (static_cast<int>(out.size()) >= n || seen_.count(id)) return;
    MarkProposed(id, p);
    out.push_back({id, p});
  };
  if (seen_.empty()) take(space_->DefaultId(), Proposer::kDefault);
  for (uint64_t id : transplants_) take(id, Proposer::kTransplant);
  if (static_cast<int>(out.size()) >= n || exhausted()) return out;

  std::vector<float> spread;
  const std::vector<float> score = Scores(model, &spread);
  std::vector<size_t> order(points_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto by = [&](float kappa) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return score[a] + kappa * spread[a] > score[b] + kappa * spread[b];
    });
  };
  const int room = n - static_cast<int>(out.size());
  const int explore = model ? std::max(room * 15 / 100, room >= 4 ? 1 : 0) : 0;
  const int at_random = std::max(room / 10, room >= 4 ? 1 : 0);
  const int neighbours = best_ && room >= 3 ? std::max(1, room / 4) : 0;
  if (best_) {
    std::vector<uint64_t> near = space_->Neighbours(*best_);
    auto score_of = [&](uint64_t id) {
      auto it = std::find(points_.begin(), points_.end(), id);
      return it == points_.end() ? -1e30F : score[static_cast<size_t>(it - points_.begin())];
    };
    std::stable_sort(near.begin(), near.end(),
                     [&](uint64_t a, uint64_t b) { return score_of(a) > score_of(b); });
    int taken = 0;
    for (uint64_t id : near) {
      if (taken < neighbours && !seen_.count(id)) take(id, Proposer::kNeighbour), ++taken;
    }
  }
  for (int k = 0; k < at_random; ++k) {
    for (int tries = 0; tries < 64; ++tries) {
      uint64_t id = points_[static_cast<size_t>(random.Below(points_.size()))];
      if (seen_.count(id)) continue;
      take(id, Proposer::kRandom);
      break;
    }
  }
  if (explore > 0) {
    by(kKappa);
    int taken = 0;
    for (size_t i : order) {
      if (taken < explore && !seen_.count(points_[i]))
        take(points_[i], Proposer::kUncertainty), ++taken;
    }
  }
  by(0);
  for (size_t i : order) take(points_[i], Proposer::kModel);
  return out;
}

void TaskSearch::Report(uint64_t id, measure::Outcome outcome, double median_ns) {
  if (outcome == measure::Outcome::kWorkerLost) {
    // Nobody's fault: the point may be proposed again.
    auto it = seen_.find(id);
    if (it != seen_.end() && !results_.count(id)) {
      counts_[it->second].candidates--;
      seen_.erase(it);
    }
    return;
  }
  auto it = seen_.find(id);
  const Proposer proposer = it == seen_.end() ? Proposer::kTransplant : it->second;
  seen_.emplace(id, proposer);
  if (!results_.emplace(id, Result{outcome, median_ns, proposer}).second) return;
  order_.push_back(id);
  if (outcome == measure::Outcome::kOk) {
    if (id == space_->DefaultId()) default_ns_ = median_ns;
    if (!best_ || median_ns < best_ns_) {
      if (best_) counts_[proposer].wins++;
      best_ = id;
      best_ns_ = median_ns;
    }
  }
  history_.push_back(best_ns_);
}

std::vector<uint64_t> TaskSearch::Top(int n) const {
  std::vector<std::pair<double, uint64_t>> ok;
  for (uint64_t id : order_) {
    const Result& r = results_.at(id);
    if (r.outcome == measure::Outcome::kOk) ok.emplace_back(r.median_ns, id);
  }
  std::stable_sort(ok.begin(), ok.end());
  std::vector<uint64_t> out;
  for (size_t i = 0; i < ok.size() && static_cast<int>(i) < n; ++i) out.push_back(ok[i].second);
  return out;
}

costmodel::TrainingTask TaskSearch::TrainingRows() const {
  costmodel::TrainingTask t;
  for (uint64_t id : order_) {
    const Result& r = results_.at(id);
    if (r.outcome != measure::Outcome::kOk && !OwnFault(r.outcome)) continue;
    t.features.push_back(extractor_.Extract(id));
    t.labels.push_back(
        r.outcome == measure::Outcome::kOk ? static_cast<float>(best_ns_ / r.median_ns) : 0.0F);
  }
  return t;
}

std::optional<double> TaskSearch::RankCorrelationOnRandom(
    const costmodel::XgboostModel* model) const {
  std::vector<costmodel::FeatureVector> rows;
  std::vector<double> speed, score;
  for (uint64_t id : order_) {
    const Result& r = results_.at(id);
    if (r.proposer != Proposer::kRandom || r.outcome != measure::Outcome::kOk) continue;
    rows.push_back(extractor_.Extract(id));
    speed.push_back(-r.median_ns);
    score.push_back(-extractor_.AnalyticSeconds(id));
  }
  if (speed.size() < 4) return std::nullopt;
  if (model) {
    auto p = model->Predict(rows);
    for (size_t i = 0; p.ok() && i < p->size(); ++i) score[i] = (*p)[i].mean;
  }
  auto ranks = [](const std::vector<double>& v) {
    std::vector<size_t> o(v.size());
    std::iota(o.begin(), o.end(), size_t{0});
    std::stable_sort(o.begin(), o.end(), [&](size_t a, size_t b) { return v[a] < v[b]; });
    std::vector<double> r(v.size());
    for (size_t i = 0; i < o.size(); ++i) r[o[i]] = static_cast<double>(i);
    return r;
  };
  std::vector<double> a = ranks(speed), b = ranks(score);
  const auto n = static_cast<double>(a.size());
  double d2 = 0;
  for (size_t i = 0; i < a.size(); ++i) d2 += (a[i] - b[i]) * (a[i] - b[i]);
  return 1 - 6 * d2 / (n * (n * n - 1));
}

}  // namespace hone::search
