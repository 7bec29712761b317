#include "client/server_progress.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "fmt/format.h"

#include "base/core/check.h"
#include "client/progress_json.h"
#include "client/terminal_text.h"

namespace hone::client {

void ServerProgress::SetBounds(const std::vector<double>& bounds_ns) {
  HONE_CHECK(bounds_ns.size() == tasks_.size());
  for (size_t i = 0; i < tasks_.size(); ++i) tasks_[i].row.bound_ns = bounds_ns[i];
}

void ServerProgress::Take(const proto::SessionEvent& event) {
  switch (event.kind) {
    case proto::SessionEvent::Kind::kState:
      // One more comes with each connection.
      if (info_.created_ms == 0) before_ = event.info.attempts;
      info_ = event.info;
      break;
    case proto::SessionEvent::Kind::kEnded:
      info_ = event.info;
      ended_ = true;
      break;
    case proto::SessionEvent::Kind::kProposed:
      open_[event.attempt] = event.task;
      is_default_[event.attempt] = event.proposer == "default";
      break;
    case proto::SessionEvent::Kind::kMeasured: {
      ++answered_;
      if (event.outcome != measure::Outcome::kOk) ++failures_[event.outcome];
      const auto open = open_.find(event.attempt);
      if (open == open_.end() || open->second >= static_cast<int>(tasks_.size())) break;
      TaskRow& task = tasks_[static_cast<size_t>(open->second)].row;
      ++task.trials;
      if (event.outcome != measure::Outcome::kOk) ++task.failures[event.outcome];
      if (event.median_ns > 0) {
        if (is_default_[event.attempt]) task.default_ns = event.median_ns;
        if (task.best_ns == 0 || event.median_ns < task.best_ns) task.best_ns = event.median_ns;
      }
      is_default_.erase(event.attempt);
      open_.erase(open);
      break;
    }
    case proto::SessionEvent::Kind::kDecided: {
      if (event.task >= static_cast<int>(tasks_.size())) break;
      Task& task = tasks_[static_cast<size_t>(event.task)];
      task.compared = true;
      task.replaced = event.replaced;
      task.row.default_ns = event.default_ns;
      task.row.best_ns = event.best_ns;
      break;
    }
  }
}

void ServerProgress::TakeRow(const absl::StatusOr<proto::SessionInfo>& row) {
  silent_ = !row.ok();
  if (row.ok() && !ended_) info_ = *row;
}

double ServerProgress::TotalNs(bool best) const {
  double total = 0;
  for (const auto& [row, workload, compared, replaced] : tasks_) {
    if (row.best_ns == 0) continue;
    if (!best && row.default_ns == 0) return 0;
    total += row.count * (best ? row.best_ns : row.default_ns);
  }
  return total;
}

std::string ServerProgress::Kernels() const { return KernelsText(Rows()); }

std::vector<TaskRow> ServerProgress::Rows() const {
  std::vector<TaskRow> rows;
  for (const Task& task : tasks_) {
    rows.push_back(task.row);
    rows.back().compared = task.compared;
  }
  return rows;
}

double ServerProgress::Seconds(const WallClock& clock) const {
  if (info_.created_ms == 0) return 0;
  return 1e-3 * static_cast<double>(clock.UnixNs() / 1'000'000 - info_.created_ms);
}

TuneState ServerProgress::State(const WallClock& clock) const {
  const double seconds = Seconds(clock);
  TuneState state{.parts = {}, .failures = failures_};
  state.parts.push_back(budget_ && !ended_
                            ? ProgressText(*budget_, {seconds, Candidates()}, clock)
                            : fmt::format("{}  {} candidates", Duration(seconds), Candidates()));
  state.parts.push_back(TotalNs(true) == 0 && catching_up() ? "reading what was measured before"
                                                            : Kernels());
  if (ended_) return state;
  if (silent_) {
    state.parts.emplace_back("the server does not answer");
  } else if (!info_.reason.empty()) {
    state.parts.push_back(TerminalText(info_.reason));
  }
  return state;
}

std::string ServerProgress::Json(const WallClock& clock) const {
  ProgressFacts facts{
      .text = State(clock).Line(), .seconds = Seconds(clock), .candidates = Candidates()};
  if (budget_ && budget_->seconds > 0) facts.budget_seconds = budget_->seconds;
  return ProgressJson(facts);
}

void ServerProgressView::Show(const ServerProgress& progress) {
  constexpr int64_t kTerminalPauseNs = 500'000'000, kJsonPauseNs = 1'000'000'000,
                    kLinePauseNs = 10'000'000'000;
  const bool terminal = context_.environment.error_is_terminal;
  const bool json = !terminal && context_.json();
  const int64_t now_ns = context_.environment.clock->NowNs();
  if (!begun_ns_) begun_ns_ = now_ns;
  // A plain line stands for long, so it waits for what was measured before, which comes at once.
  const bool stands = !terminal && !json;
  if (stands && progress.catching_up() && now_ns - *begun_ns_ < kLinePauseNs) return;
  const int64_t pause_ns = terminal ? kTerminalPauseNs : json ? kJsonPauseNs : kLinePauseNs;
  if (now_ns - shown_ns_ < pause_ns) return;
  shown_ns_ = now_ns;
  const TuneState state = progress.State(SystemWallClock());
  if (json) {
    context_.err << progress.Json(SystemWallClock()) << "\n";
  } else if (terminal) {
    const ScreenSize screen = ErrorScreen();
    context_.err << table_.Frame(LiveTable(progress.Rows(), state, screen), screen);
  } else {
    context_.err << state.Line() << "\n";
  }
  context_.err << std::flush;
}

void ServerProgressView::End(const ServerProgress& progress) {
  context_.err << table_.Erase();
  if (!context_.environment.error_is_terminal && context_.json()) {
    context_.err << progress.Json(SystemWallClock()) << "\n";
  }
  context_.err << std::flush;
}

}  // namespace hone::client
