#include "client/server_progress.h"

#include "fmt/format.h"

namespace hone::client {

void ServerProgress::Take(const proto::SessionEvent& event) {
  switch (event.kind) {
    case proto::SessionEvent::Kind::kState: info_ = event.info; break;
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
      Task& task = tasks_[static_cast<size_t>(open->second)];
      ++task.trials;
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
      task.default_ns = event.default_ns;
      task.best_ns = event.best_ns;
      break;
    }
  }
}

double ServerProgress::TotalNs(bool best) const {
  double total = 0;
  for (const Task& task : tasks_) {
    total += task.count * (best || task.default_ns == 0 ? task.best_ns : task.default_ns);
  }
  return total;
}

std::string ServerProgress::LastLine() const {
  std::string failures;
  for (const auto& [outcome, n] : failures_) {
    failures += fmt::format(", {} {}", n, measure::ToString(outcome));
  }
  return fmt::format("{} candidates measured{}; kernels {:.3f} ms by default, {:.3f} ms now\n",
                     answered_, failures, TotalNs(false) * 1e-6, TotalNs(true) * 1e-6);
}

std::string ServerProgress::Table() const {
  std::string text;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i];
    const double gain =
        task.best_ns > 0 && task.default_ns > 0 ? task.default_ns / task.best_ns : 1;
    text += fmt::format("{:3} {:28.28} x{:<3} {:10.1f} us  {:5.2f} x default  {:4} trials\n", i,
                        task.name, task.count, task.best_ns * 1e-3, gain, task.trials);
  }
  return text + LastLine();
}

}  // namespace hone::client
