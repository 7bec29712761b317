#include "server/web/session_story.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "server/session_book.h"

namespace hone::server::web {

SessionStory::SessionStory(const proto::SessionSpec& spec) {
  for (const proto::TaskSpec& task : spec.tasks) {
    tasks_.push_back(
        {.name = task.name, .workload = HashBytes(task.workload), .count = task.count});
  }
}

double SessionStory::TotalNs(bool best) const {
  double total = 0;
  for (const Task& task : tasks_) {
    if (task.best_ns == 0) continue;
    if (!best && task.default_ns == 0) return 0;
    total += task.count * (best ? task.best_ns : task.default_ns);
  }
  return total;
}

int64_t SessionStory::measured_tasks() const {
  return std::ranges::count_if(tasks_, [](const Task& task) { return task.best_ns > 0; });
}

double SessionStory::SearchedDefaultNs() const {
  double total = 0;
  for (const Task& task : tasks_) {
    if (task.searched_best_ns == 0) continue;
    if (task.searched_default_ns == 0) return 0;
    total += task.count * task.searched_default_ns;
  }
  return total;
}

void SessionStory::Searched(Task& task, double ns) {
  if (task.searched_best_ns == 0) {
    for (Point& point : curve_) point.ns += task.count * ns;
  }
  if (task.searched_best_ns == 0 || ns < task.searched_best_ns) task.searched_best_ns = ns;
  if (!task.compared) {
    task.default_ns = task.searched_default_ns;
    task.best_ns = task.searched_best_ns;
  }
  Append();
}

void SessionStory::Append() {
  double total = 0;
  for (const Task& task : tasks_) total += task.count * task.searched_best_ns;
  if (total <= 0) return;
  if (!curve_.empty() && curve_.back().ns == total) return;
  if (!curve_.empty() && curve_.back().seconds == elapsed_seconds_) curve_.pop_back();
  curve_.push_back({elapsed_seconds_, total});
  if (curve_.size() <= kMostPoints) return;
  // Every other point of the first three quarters goes: what is recent stays exact.
  std::vector<Point> thinner;
  for (size_t i = 0; i < curve_.size(); ++i) {
    if (i % 2 == 0 || i > curve_.size() * 3 / 4) thinner.push_back(curve_[i]);
  }
  curve_ = std::move(thinner);
}

void SessionStory::Measured(const proto::SessionEvent& event) {
  ++answered_;
  ++outcomes_[static_cast<size_t>(event.outcome)];
  const auto open = open_.find(event.attempt);
  if (open == open_.end()) return;
  Trial trial = std::move(open->second);
  open_.erase(open);
  if (trial.task < 0 || trial.task >= static_cast<int>(tasks_.size())) return;
  Task& task = tasks_[static_cast<size_t>(trial.task)];
  ++task.trials;
  if (event.outcome != measure::Outcome::kOk) ++task.failed;
  const bool timed = event.median_ns > 0 && std::isfinite(event.median_ns);
  trial.outcome = event.outcome;
  trial.seconds = elapsed_seconds_;
  trial.ns = timed ? event.median_ns : 0;
  Keep(trial);
  if (!timed) return;
  if (trial.proposer == "default") task.searched_default_ns = event.median_ns;
  Searched(task, event.median_ns);
}

void SessionStory::Keep(const Trial& trial) {
  newest_.push_back(trial);
  if (newest_.size() > kNewest) newest_.pop_front();
  if (trial.ns == 0) return;
  std::vector<Trial>& fastest = fastest_[trial.task];
  fastest.insert(std::ranges::upper_bound(fastest, trial.ns, {}, &Trial::ns), trial);
  if (fastest.size() > kFastest) fastest.pop_back();
}

std::vector<SessionStory::Trial> SessionStory::Trials() const {
  std::map<int64_t, const Trial*, std::greater<>> by_attempt;
  for (const Trial& trial : newest_) by_attempt[trial.attempt] = &trial;
  for (const auto& [task, fastest] : fastest_) {
    for (const Trial& trial : fastest) by_attempt[trial.attempt] = &trial;
  }
  std::vector<Trial> trials;
  for (const auto& [attempt, trial] : by_attempt) trials.push_back(*trial);
  return trials;
}

void SessionStory::Found(const search::FoundEvent& found) {
  if (found.task >= static_cast<int>(tasks_.size()) || found.best_ns <= 0 || found.default_ns < 0)
    return;
  Task& task = tasks_[static_cast<size_t>(found.task)];
  if (found.default_ns > 0) task.searched_default_ns = found.default_ns;
  Searched(task, found.best_ns);
}

void SessionStory::Take(const db::Event& event) {
  sequence_ = std::max(sequence_, event.sequence);
  if (const auto elapsed = search::EventAs<search::ElapsedEvent>(event)) {
    elapsed_seconds_ = std::max(elapsed_seconds_, elapsed->seconds);
    return;
  }
  if (const auto found = search::EventAs<search::FoundEvent>(event)) return Found(*found);
  if (event.type == db::kModelVerdict) {
    auto verdict = db::VerdictOf(event, false);
    const bool of_tuning = verdict && verdict->subject == db::ModelVerdict::Subject::kTuning;
    if (of_tuning) verdict_ = std::move(verdict);
    return;
  }
  const std::optional<proto::SessionEvent> seen = EventOf(event);
  if (!seen) return;
  if (seen->kind == proto::SessionEvent::Kind::kProposed) {
    open_[seen->attempt] = {
        .attempt = seen->attempt, .task = seen->task, .proposer = seen->proposer};
  } else if (seen->kind == proto::SessionEvent::Kind::kMeasured) {
    Measured(*seen);
  } else if (seen->kind == proto::SessionEvent::Kind::kDecided &&
             seen->task < static_cast<int>(tasks_.size()) && seen->best_ns > 0) {
    Task& task = tasks_[static_cast<size_t>(seen->task)];
    task.compared = true;
    task.replaced = seen->replaced;
    task.default_ns = seen->default_ns;
    task.best_ns = seen->replaced ? seen->best_ns : std::min(seen->default_ns, seen->best_ns);
    // In a shared search others may have measured all of it.
    if (task.searched_best_ns == 0) Searched(task, task.best_ns);
  }
}

std::optional<double> SessionStory::SecondsLeft(const proto::SessionSpec& spec,
                                                int64_t now_unix_ms) const {
  std::optional<double> left;
  const auto limit = [&](double seconds) {
    left = std::min(left.value_or(seconds), std::max(0.0, seconds));
  };
  if (spec.seconds > 0) limit(spec.seconds - elapsed_seconds_);
  if (spec.until_unix_ms > 0) {
    limit(static_cast<double>(spec.until_unix_ms - now_unix_ms) * 1e-3);
  }
  if (spec.trials > 0 && answered_ > 0 && elapsed_seconds_ > 0) {
    limit(static_cast<double>(spec.trials - answered_) * elapsed_seconds_ /
          static_cast<double>(answered_));
  }
  return left;
}

}  // namespace hone::server::web
