#include "search/task_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/core/cpu.h"
#include "costmodel/point_scores.h"
#include "search/evolution.h"

namespace hone::search {

namespace {
constexpr std::array<std::string_view, kNumProposers> kNames = {
    "default", "transplant", "model", "uncertainty", "neighbour", "random"};
/// Points of a sample, and how many of the best of them evolution begins with.
constexpr uint64_t kSampled = 1 << 16;
constexpr size_t kAncestors = 4096;
constexpr int kMeasuredAncestors = 64;
constexpr float kKappa = 1.0F;  ///< weight of the bag's spread in exploration slots
constexpr int kIncumbents = 3;  ///< whose neighbours compete

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

TaskSearch::TaskSearch(std::shared_ptr<const schedule::Space> space, uint64_t seed, int min_stale,
                       bool evolve)
    : space_(std::move(space)),
      extractor_(*space_),
      random_(seed),
      min_stale_(min_stale),
      evolve_(evolve) {}

void TaskSearch::NeedPoints() {
  if (!points_.empty()) return;
  const uint64_t product = space_->product();
  points_.push_back(space_->DefaultId());
  const auto add = [this](uint64_t id) {
    if (id != space_->DefaultId() && space_->Admits(id)) points_.push_back(id);
  };
  if (product <= kMostPoints) {
    for (uint64_t id = 0; id < product; ++id) add(id);
  } else {
    // One from each of equal strata: every Sketch and every value of the outer tables is met.
    Random random = random_.Fork(~uint64_t{0});
    for (uint64_t i = 0; i < kSampled; ++i) {
      const auto first =
          static_cast<uint64_t>(static_cast<double>(product) / kSampled * static_cast<double>(i));
      add(std::min(product - 1, first + random.Below(product / kSampled)));
    }
  }
  std::sort(points_.begin() + 1, points_.end());
  points_.erase(std::unique(points_.begin() + 1, points_.end()), points_.end());
  points_.shrink_to_fit();
}

std::optional<uint32_t> TaskSearch::PlaceOf(uint64_t id) const {
  if (points_.empty()) return std::nullopt;
  if (id == points_.front()) return 0;
  const auto at = std::lower_bound(points_.begin() + 1, points_.end(), id);
  if (at == points_.end() || *at != id) return std::nullopt;
  return static_cast<uint32_t>(at - points_.begin());
}

std::optional<std::string> TaskSearch::TraceText(uint64_t id) {
  const auto trace = space_->TraceOf(id);
  if (trace.ok()) return schedule::ToText(*trace);
  unlowerable_.insert(id);
  return std::nullopt;
}

bool TaskSearch::Compares() {
  if (!compares_) {
    compares_ = space_->product() <= kMostPoints && space_->admitted() <= kMostCompared;
  }
  return *compares_;
}

void TaskSearch::NoteTrace(uint32_t place, const std::optional<std::string>& text) {
  NeedPoints();
  traces_.resize(points_.size());
  PointTrace& noted = traces_[place];
  if (noted.first != PointTrace::kUnknown) return;
  if (text) noted.hash = HashBytes(*text);
  const auto same = std::find_if(traces_.begin(), traces_.end(), [&](const PointTrace& other) {
    return other.first != PointTrace::kUnknown && other.hash == noted.hash;
  });
  noted.first = same == traces_.end() ? place : same->first;
}

TaskSearch::PointTrace& TaskSearch::FirstWithTrace(uint32_t place) {
  if (traces_.empty() || traces_[place].first == PointTrace::kUnknown)
    NoteTrace(place, TraceText(points_[place]));
  return traces_[traces_[place].first];
}

void TaskSearch::NeedTracesOfSeen() {
  const std::vector<uint64_t> replayed = std::exchange(replayed_, {});
  if (replayed.empty() || !Compares()) return;
  NeedPoints();
  for (const uint64_t id : replayed) {
    const std::optional<uint32_t> place = PlaceOf(id);
    if (!place || !seen_.contains(id)) continue;  // of another Hone; lost since
    PointTrace& first = FirstWithTrace(*place);
    if (first.proposed == PointTrace::kUnknown) first.proposed = *place;
  }
}

bool TaskSearch::Take(uint64_t id, Proposer proposer, std::vector<Proposal>* out) {
  if (seen_.contains(id) || unlowerable_.contains(id)) return false;
  std::optional<std::string> text;
  if (Compares()) {
    NeedPoints();
    const std::optional<uint32_t> place = PlaceOf(id);
    if (!place) return false;
    if (traces_.empty() || traces_[*place].first == PointTrace::kUnknown) {
      text = TraceText(id);
      NoteTrace(*place, text);
      if (!text) return false;
    }
    PointTrace& first = FirstWithTrace(*place);
    if (first.proposed != PointTrace::kUnknown) return false;
    first.proposed = *place;
  }
  if (!text) text = TraceText(id);
  if (!text) return false;
  Mark(id, proposer);
  out->push_back({id, proposer, *std::move(text)});
  return true;
}

void TaskSearch::ModelChanged() {
  ranking_.made = false;
  ancestors_ = Top(kMeasuredAncestors, true);
  results_at_model_ = answers_.size();
}

void TaskSearch::ScoreInto(const costmodel::XgboostModel* model, std::span<const uint64_t> ids,
                           std::vector<float>* score, std::vector<float>* daring) const {
  if (model) {
    const auto predicted = costmodel::ScorePoints(extractor_, *model, ids, UsableCores());
    if (predicted.ok()) {
      for (const costmodel::Prediction& p : *predicted) {
        score->push_back(p.mean);
        daring->push_back(p.mean + kKappa * p.spread);
      }
      return;
    }
  }
  for (const uint64_t id : ids) {
    score->push_back(static_cast<float>(-std::log(extractor_.AnalyticSeconds(id))));
    daring->push_back(score->back());
  }
}

void TaskSearch::EvolveInto(const costmodel::XgboostModel* model, Ranking* ranking) const {
  std::vector<uint32_t> order(points_.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto most = static_cast<std::ptrdiff_t>(std::min(kAncestors, order.size()));
  std::partial_sort(order.begin(), order.begin() + most, order.end(), [&](uint32_t a, uint32_t b) {
    const float x = ranking->score[a], y = ranking->score[b];
    return x != y ? x > y : a < b;
  });
  std::vector<ScoredPoint> start;
  for (std::ptrdiff_t i = 0; i < most; ++i)
    start.push_back({points_[order[i]], ranking->score[order[i]]});
  std::vector<uint64_t> others;
  for (const auto* ids : {&ancestors_, &transplants_}) {
    for (const uint64_t id : *ids) {
      if (!PlaceOf(id) && std::find(others.begin(), others.end(), id) == others.end())
        others.push_back(id);
    }
  }
  std::vector<float> score, daring;
  ScoreInto(model, others, &score, &daring);
  for (size_t i = 0; i < others.size(); ++i) start.push_back({others[i], score[i]});
  absl::flat_hash_map<uint64_t, float> bold;
  const auto found = Evolve(
      *space_, start,
      [&](std::span<const uint64_t> ids) {
        std::vector<float> mean, upper;
        ScoreInto(model, ids, &mean, &upper);
        for (size_t i = 0; i < ids.size(); ++i) bold.emplace(ids[i], upper[i]);
        return mean;
      },
      random_.Fork(~uint64_t{1} - results_at_model_));
  for (const ScoredPoint& p : found) {
    if (PlaceOf(p.id)) continue;  // of the sample's rest
    ranking->evolved.push_back(p.id);
    ranking->score.push_back(p.score);
    ranking->daring.push_back(bold.at(p.id));
  }
}

const TaskSearch::Ranking& TaskSearch::Rank(const costmodel::XgboostModel* model) {
  if (ranking_.made && ranking_.model == model) return ranking_;
  ranking_ = {model, true, {}, {}, {}, {}, {}};
  ScoreInto(model, points_, &ranking_.score, &ranking_.daring);
  if (evolve_ && space_->product() > kMostPoints) EvolveInto(model, &ranking_);
  const auto sorted = [&](const std::vector<float>& by) {
    std::vector<uint32_t> order(by.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return by[a] > by[b]; });
    return order;
  };
  ranking_.best_first = sorted(ranking_.score);
  ranking_.daring_first = sorted(ranking_.daring);
  return ranking_;
}

void TaskSearch::AddTransplant(uint64_t id) {
  if (id >= space_->product() || !space_->Admits(id)) return;
  if (std::find(transplants_.begin(), transplants_.end(), id) == transplants_.end())
    transplants_.push_back(id);
}

std::vector<uint64_t> TaskSearch::NearIncumbents(const Ranking& ranking,
                                                 const costmodel::XgboostModel* model) const {
  std::vector<uint64_t> near, strangers;
  std::vector<float> score;
  absl::flat_hash_set<uint64_t> met;
  for (uint64_t from : Top(kIncumbents)) {
    for (const uint64_t id : space_->Neighbours(from)) {
      if (seen_.contains(id) || !met.insert(id).second) continue;
      const std::optional<uint32_t> place = PlaceOf(id);
      if (!place) {
        strangers.push_back(id);
      } else {
        near.push_back(id);
        score.push_back(ranking.score[*place]);
      }
    }
  }
  std::vector<float> daring;
  // Beyond a sample.
  if (space_->product() > kMostPoints) {
    ScoreInto(model, strangers, &score, &daring);
    near.insert(near.end(), strangers.begin(), strangers.end());
  }
  std::vector<uint32_t> order(near.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return score[a] > score[b]; });
  std::vector<uint64_t> out;
  for (const uint32_t i : order) out.push_back(near[i]);
  return out;
}

bool TaskSearch::settled() const {
  const int n = static_cast<int>(history_.size());
  return best_ && n - last_gain_ >= std::max(min_stale_, last_gain_);
}

void TaskSearch::MarkProposed(uint64_t id, Proposer proposer) {
  replayed_.push_back(id);
  Mark(id, proposer);
}

void TaskSearch::Mark(uint64_t id, Proposer proposer) {
  ++proposals_;
  if (!seen_.try_emplace(id, Seen{proposer}).second) return;
  counts_[proposer].candidates++;
}

std::vector<TaskSearch::Proposal> TaskSearch::Propose(int n, const costmodel::XgboostModel* model,
                                                      const std::vector<uint64_t>& hints) {
  std::vector<Proposal> out;
  NeedTracesOfSeen();
  // The stream depends on what was proposed before, so that a replayed search goes on equally.
  Random random = random_.Fork(proposals_);
  const auto take = [&](uint64_t id, Proposer p) {
    return static_cast<int>(out.size()) < n && Take(id, p, &out);
  };
  if (seen_.empty()) take(space_->DefaultId(), Proposer::kDefault);
  for (uint64_t id : transplants_) take(id, Proposer::kTransplant);
  for (uint64_t id : hints) {
    if (id < space_->product() && space_->Admits(id)) take(id, Proposer::kTransplant);
  }
  if (static_cast<int>(out.size()) >= n || exhausted_) return out;

  NeedPoints();
  const Ranking& ranking = Rank(model);
  const int room = n - static_cast<int>(out.size());
  const int explore = model ? std::max(room * 15 / 100, room >= 4 ? 1 : 0) : 0;
  const int at_random = std::max(room / 10, room >= 4 ? 1 : 0);
  int neighbours = best_ && room >= 3 ? std::max(1, room / 4) : 0;
  if (neighbours > 0) {
    for (uint64_t id : NearIncumbents(ranking, model)) {
      if (neighbours > 0 && take(id, Proposer::kNeighbour)) --neighbours;
    }
  }
  for (int k = 0; k < at_random; ++k) {
    for (int tries = 0; tries < 64; ++tries) {
      const auto place = static_cast<size_t>(random.Below(points_.size()));
      if (!take(points_[place], Proposer::kRandom)) continue;
      const auto below = std::count_if(ranking.score.begin(), ranking.score.end(),
                                       [&](float s) { return s < ranking.score[place]; });
      expected_[points_[place]] = static_cast<double>(below);
      break;
    }
  }
  int daring = explore;
  for (uint32_t i : ranking.daring_first) {
    if (daring <= 0) break;
    if (take(RankedPoint(ranking, i), Proposer::kUncertainty)) --daring;
  }
  for (uint32_t i : ranking.best_first) {
    if (static_cast<int>(out.size()) >= n) break;
    take(RankedPoint(ranking, i), Proposer::kModel);
  }
  exhausted_ = static_cast<int>(out.size()) < n;
  return out;
}

void TaskSearch::Report(uint64_t id, measure::Outcome outcome, double median_ns,
                        const OnPart& part) {
  if (outcome == measure::Outcome::kWorkerLost) {
    // Nobody's fault: the point may be proposed again.
    const auto it = seen_.find(id);
    if (it == seen_.end() || it->second.answer >= 0) return;
    counts_[it->second.proposer].candidates--;
    seen_.erase(it);
    exhausted_ = false;
    const std::optional<uint32_t> place = PlaceOf(id);
    if (!place || traces_.empty() || traces_[*place].first == PointTrace::kUnknown) return;
    PointTrace& first = FirstWithTrace(*place);
    if (first.proposed == *place) first.proposed = PointTrace::kUnknown;
    return;
  }
  const auto [it, stranger] = seen_.try_emplace(id, Seen{Proposer::kTransplant});
  if (stranger) replayed_.push_back(id);
  if (it->second.answer >= 0) return;
  const Proposer proposer = it->second.proposer;
  it->second.answer = static_cast<int32_t>(answers_.size());
  answers_.push_back({id, median_ns, outcome, proposer, part.whole});
  on_part_ += part.whole ? 0 : 1;
  if (outcome == measure::Outcome::kOk && part.whole) {
    if (part.part_ns > 0) parts_.Add(space_->At(id).sketch, part.part_ns, median_ns);
    if (id == space_->DefaultId()) default_ns_ = median_ns;
    if (!best_ || median_ns < best_ns_) {
      if (best_) counts_[proposer].wins++;
      best_ = id;
      best_ns_ = median_ns;
    }
  }
  history_.push_back(best_ns_);
  if (best_ && (noticed_ns_ == 0 || best_ns_ * kNoticeable < noticed_ns_)) {
    noticed_ns_ = best_ns_;
    last_gain_ = static_cast<int>(history_.size());
  }
}

std::map<measure::Outcome, int64_t> TaskSearch::failures() const {
  std::map<measure::Outcome, int64_t> out;
  for (const Answer& a : answers_) {
    if (a.outcome != measure::Outcome::kOk) ++out[a.outcome];
  }
  return out;
}

std::vector<uint64_t> TaskSearch::Illegal() const {
  std::vector<uint64_t> out;
  for (const Answer& a : answers_) {
    if (a.outcome == measure::Outcome::kIllegal) out.push_back(a.id);
  }
  return out;
}

std::vector<uint64_t> TaskSearch::NearBestOnPart(int n) const {
  std::vector<uint64_t> out;
  for (const uint64_t id : Top(static_cast<int>(answers_.size()), true)) {
    const Answer& a = answers_[static_cast<size_t>(seen_.at(id).answer)];
    if (static_cast<int>(out.size()) >= n || a.median_ns >= kNearBest * best_ns_) break;
    if (!a.whole) out.push_back(id);
  }
  return out;
}

std::vector<uint64_t> TaskSearch::Finalists(int whole) const {
  constexpr int kMostOnPart = 2;
  std::vector<uint64_t> out = Top(whole);
  if (out.empty()) return out;
  std::erase(out, space_->DefaultId());
  out.insert(out.begin(), space_->DefaultId());
  for (const uint64_t id : NearBestOnPart(kMostOnPart)) out.push_back(id);
  return out;
}

std::vector<uint64_t> TaskSearch::Top(int n, bool parts) const {
  std::vector<std::pair<double, uint64_t>> ok;
  for (const Answer& a : answers_) {
    if (a.outcome == measure::Outcome::kOk && (a.whole || parts))
      ok.emplace_back(a.median_ns, a.id);
  }
  std::stable_sort(ok.begin(), ok.end());
  std::vector<uint64_t> out;
  for (size_t i = 0; i < ok.size() && static_cast<int>(i) < n; ++i) out.push_back(ok[i].second);
  return out;
}

costmodel::TrainingTask TaskSearch::TrainingRows(int most) const {
  costmodel::TrainingTask t;
  const std::vector<uint64_t> best = Top(most / 2, true);
  const absl::flat_hash_set<uint64_t> among_best(best.begin(), best.end());
  const size_t room = static_cast<size_t>(most) - best.size();
  const size_t others = answers_.size() - best.size();
  size_t met = 0;
  for (const Answer& a : answers_) {
    // Each k-th of the others, over the whole search.
    const bool chosen = among_best.contains(a.id) || others <= room ||
                        met * room / others != (met + 1) * room / others;
    met += among_best.contains(a.id) ? 0 : 1;
    if (!chosen || (a.outcome != measure::Outcome::kOk && !OwnFault(a.outcome))) continue;
    t.features.push_back(extractor_.Extract(a.id));
    t.labels.push_back(a.outcome == measure::Outcome::kOk
                           ? static_cast<float>(a.whole ? best_ns_ / a.median_ns
                                                        : std::min(1.0, best_ns_ / a.median_ns))
                           : 0.0F);
  }
  return t;
}

std::optional<double> TaskSearch::RankCorrelationOnRandom() const {
  std::vector<double> speed, score;
  for (const Answer& a : answers_) {
    const auto expected = expected_.find(a.id);
    if (a.outcome != measure::Outcome::kOk || expected == expected_.end()) continue;
    speed.push_back(-a.median_ns);
    score.push_back(expected->second);
  }
  if (speed.size() < 4) return std::nullopt;
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
