#include "search/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/status.h"

namespace hone::search {

namespace {
constexpr double kStaleChance = 0.05;
constexpr int kBatch = 8;  ///< candidates a task gets in a row
constexpr int kMostSiblings = 4;
constexpr int kMostLosses = 3;
constexpr int kMostHints = 2;  ///< of siblings, a batch
constexpr int kLeastRowsOfTask = 64;
}  // namespace

std::string_view StopReasonName(StopReason reason) {
  constexpr std::array<std::string_view, 8> kNames = {"running",
                                                      "trials used up",
                                                      "time used up",
                                                      "date reached",
                                                      "every candidate was measured",
                                                      "no gain is expected any more",
                                                      "interrupted",
                                                      "disk full"};
  return kNames[static_cast<size_t>(reason)];
}

Tuner::Tuner(const ir::Target& target, const TunerOptions& options)
    : target_(target), options_(options), random_(options.seed) {}

Tuner::Tuner(std::vector<TuningTask> tasks, const ir::Target& target, const TunerOptions& options)
    : Tuner(target, options) {
  Join({.trials = options.trials, .seed = options.seed, .tasks = std::move(tasks)});
}

void Tuner::FindSiblings() {
  siblings_.assign(tasks_.size(), {});
  for (size_t i = 0; i < forms_.size(); ++i) {
    std::vector<std::pair<double, int>> near;
    for (size_t j = 0; searches_[i] && j < forms_.size(); ++j) {
      if (i == j || !searches_[j]) continue;
      const auto distance = db::WorkloadDistance(forms_[i], forms_[j]);
      if (distance) near.emplace_back(*distance, static_cast<int>(j));
    }
    std::sort(near.begin(), near.end());
    if (near.size() > kMostSiblings) near.resize(kMostSiblings);
    for (const auto& [distance, j] : near) siblings_[i].push_back(j);
  }
}

std::vector<uint64_t> Tuner::SiblingHints(int task) const {
  std::vector<uint64_t> out;
  for (int j : siblings_[static_cast<size_t>(task)]) {
    const TaskSearch& s = *searches_[static_cast<size_t>(j)];
    if (!s.best() || *s.best() == s.space().DefaultId()) continue;
    const auto moved = searches_[static_cast<size_t>(task)]->space().Nearest(s.space(), *s.best());
    if (moved) out.push_back(*moved);
    if (out.size() >= kMostHints) break;
  }
  return out;
}

std::optional<int> Tuner::TaskOf(const Hash128& workload) const {
  for (int i = 0; i < num_tasks(); ++i) {
    if (searching(i) && tasks_[static_cast<size_t>(i)].hash == workload) return i;
  }
  return std::nullopt;
}

std::string Tuner::Fingerprint() const {
  std::string text;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (!searches_[i]) continue;
    text += fmt::format("{} {} {}", tasks_[i].hash.ToHex(), tasks_[i].count,
                        searches_[i]->space().hash());
    text += tasks_[i].other_count > 0 ? fmt::format(" {}\n", tasks_[i].other_count) : "\n";
  }
  return HashBytes(text).ToHex();
}

void Tuner::SetModel(std::shared_ptr<const costmodel::XgboostModel> model) {
  model_ = std::move(model);
  for (auto& s : searches_) {
    if (s) s->ModelChanged();
  }
}

double Tuner::ExpectedGain(int i) const {
  const TaskSearch& s = *searches_[i];
  if (s.exhausted() || s.settled()) return 0;
  // Those under way count as measured: they are paid, and others wait for their turn.
  const auto under_way = static_cast<double>(in_flight_[i]);
  if (s.trials() == 0)
    return 1e30 / (1 + under_way);  // nothing is known: those with least under way first
  const double best = s.best_ns();
  if (best <= 0) return 1 / (1 + under_way + s.trials());  // all failed so far: when idle
  const double left = std::max(0.0, best - tasks_[i].bound_ns);
  // The 1/t law: what the search gained so far shrinks with the number of batches; a slope over the
  // last batches beside it.
  const auto& h = s.history();
  const size_t window = std::min<size_t>(h.size() - 1, 3 * kBatch);
  const double slope = window ? (h[h.size() - 1 - window] - best) / static_cast<double>(window) : 0;
  const double trials = static_cast<double>(h.size()) + under_way;
  const double forward = std::min(left, best / (trials + 1));
  return tasks_[i].weight() * (0.2 * slope / (1 + under_way / kBatch) + 0.8 * forward) /
         std::max(1e-3, cost_seconds_[i]);
}

int Tuner::NeglectedBy(int next, const Member& member) const {
  int heaviest = -1;
  double most_ns = 0;
  for (const auto& [i, count] : member.tasks) {
    const double ns = tasks_[i].weight() * searches_[i]->best_ns();
    if (ns > most_ns) heaviest = i, most_ns = ns;
  }
  if (heaviest < 0 || heaviest == next) return -1;
  if (searches_[heaviest]->exhausted() || searches_[heaviest]->settled()) return -1;
  const int tried = searches_[heaviest]->proposed();
  const bool least = std::ranges::all_of(member.tasks, [&](const auto& task) {
    const int more = task.first == next ? kBatch : 0;
    return task.first == heaviest || searches_[task.first]->proposed() + more > tried;
  });
  return least ? heaviest : -1;
}

int Tuner::PickTask(const Member& member) {
  int best = -1, stalest = -1;
  double most = 0;
  bool all_exhausted = true;
  for (const auto& [i, count] : member.tasks) {
    if (searches_[i]->exhausted()) continue;
    all_exhausted = false;
    if (searches_[i]->settled()) continue;
    double g = ExpectedGain(i);
    // Among tasks that never ran the one that occurs most and costs most goes first.
    if (last_batch_[i] < 0) g = 1e30 * (1 + tasks_[i].weight() * tasks_[i].flop);
    if (best < 0 || g > most) best = i, most = g;
    if (stalest < 0 || last_batch_[i] < last_batch_[stalest]) stalest = i;
  }
  if (best < 0) {
    reason_ = all_exhausted ? StopReason::kExhausted : StopReason::kNothingExpected;
    return -1;
  }
  Random random = random_.Fork(static_cast<uint64_t>(attempts_));
  const int next = random.Uniform() < kStaleChance ? stalest : best;
  const int neglected = NeglectedBy(next, member);
  return neglected < 0 ? next : neglected;
}

std::vector<Tuner::Proposal> Tuner::Propose(int n, const Hash128& id) {
  std::vector<Proposal> out;
  reason_ = StopReason::kNone;
  const auto known = members_.find(id);
  if (known == members_.end()) return out;
  Member& member = known->second;
  while (static_cast<int>(out.size()) < n) {
    int64_t room = member.trials > 0 ? member.trials - member.charged : n;
    if (room <= 0) {
      reason_ = StopReason::kTrials;
      break;
    }
    const int i = PickTask(member);
    if (i < 0) break;
    const bool first = last_batch_[i] < 0;
    int want = static_cast<int>(
        std::min<int64_t>({room, first ? 1 : kBatch, n - static_cast<int64_t>(out.size())}));
    auto fresh = searches_[i]->Propose(want, model_.get(), SiblingHints(i));
    // After a restart a search learns only now that it has no point left.
    if (fresh.empty() && searches_[i]->exhausted()) continue;
    if (fresh.empty()) break;
    for (auto& p : fresh) {
      Proposal proposal{attempts_++,
                        i,
                        p.id,
                        p.proposer,
                        std::move(p.trace),
                        id,
                        searches_[i]->space().ValuesText(p.id)};
      last_batch_[i] = proposal.attempt;
      ++in_flight_[i];
      ++member.charged;
      open_[proposal.attempt] = proposal;
      out.push_back(std::move(proposal));
    }
  }
  return out;
}

ProposedEvent Tuner::EventOf(const Proposal& p) {
  return {p.attempt, p.task, p.id, p.proposer, p.member};
}

bool Tuner::Result(int64_t attempt, measure::Outcome outcome, double median_ns, double cost_seconds,
                   const TaskSearch::OnPart& part) {
  auto it = open_.find(attempt);
  if (it == open_.end()) return false;
  const Proposal p = std::move(it->second);
  open_.erase(it);
  ++answered_;
  --in_flight_[p.task];
  if (outcome == measure::Outcome::kWorkerLost) {
    --members_.at(p.member).charged;
    // Again and again: it may well be the candidate's doing. It stays proposed.
    if (++losses_[{p.task, p.id}] >= kMostLosses) return true;
  }
  searches_[p.task]->Report(p.id, outcome, median_ns, part);
  cost_seconds_[p.task] = 0.8 * cost_seconds_[p.task] + 0.2 * cost_seconds;
  return true;
}

void Tuner::Compared(int task, double default_ns, double best_ns) {
  if (searching(task)) searches_[static_cast<size_t>(task)]->SetCompared(default_ns, best_ns);
}

std::vector<Tuner::Proposal> Tuner::Open() const {
  std::vector<Proposal> out;
  for (const auto& [attempt, p] : open_) {
    Proposal& open = out.emplace_back(p);
    if (!open.trace.empty()) continue;
    const schedule::Space& space = searches_[static_cast<size_t>(p.task)]->space();
    open.values = space.ValuesText(p.id);
    const auto trace = space.TraceOf(p.id);
    if (trace.ok()) open.trace = schedule::ToText(*trace);
  }
  return out;
}

double Tuner::TotalNs(bool best) const {
  double total = 0;
  for (int i = 0; i < num_tasks(); ++i) {
    if (!searching(i)) continue;
    const TaskSearch& s = *searches_[i];
    total += tasks_[i].count * (best || s.default_ns() == 0 ? s.best_ns() : s.default_ns());
  }
  return total;
}

std::vector<costmodel::TrainingTask> Tuner::TrainingRows() const {
  std::vector<costmodel::TrainingTask> out;
  // A farm's search goes on for as long as anybody is its member; what a model costs does not.
  const auto searching =
      std::ranges::count_if(searches_, [](const auto& s) { return s != nullptr; });
  const int most = std::max(
      kLeastRowsOfTask, TaskSearch::kMostTrainingRows / std::max(1, static_cast<int>(searching)));
  for (const auto& s : searches_) {
    if (!s) continue;
    auto t = s->TrainingRows(most);
    if (t.labels.size() >= 2) out.push_back(std::move(t));
  }
  return out;
}

int64_t Tuner::training_rows() const {
  int64_t n = 0;
  for (const auto& s : searches_) n += s ? s->trials() : 0;
  return n;
}

}  // namespace hone::search
