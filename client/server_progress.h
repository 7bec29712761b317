#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/farm_messages.h"

namespace hone::client {

/// How a watched session stands, from its events. Not thread-safe.
class ServerProgress {
 public:
  struct Task {
    std::string name, workload;
    int count = 1;
    double default_ns = 0, best_ns = 0;
    int64_t trials = 0;
    bool compared = false, replaced = false;
  };
  explicit ServerProgress(std::vector<Task> tasks) : tasks_(std::move(tasks)) {}

  void Take(const proto::SessionEvent& event);

  const std::vector<Task>& tasks() const { return tasks_; }
  const proto::SessionInfo& info() const { return info_; }
  bool ended() const { return ended_; }
  int64_t answered() const { return answered_; }
  const std::map<measure::Outcome, int64_t>& failures() const { return failures_; }
  /// Σ count · latency, ns.
  double TotalNs(bool best) const;
  /// A line a task and one for all.
  std::string Table() const;
  std::string LastLine() const;

 private:
  std::vector<Task> tasks_;
  std::map<int64_t, int> open_;  ///< task of an attempt
  std::map<int64_t, bool> is_default_;
  proto::SessionInfo info_;
  bool ended_ = false;
  int64_t answered_ = 0;
  std::map<measure::Outcome, int64_t> failures_;
};

}  // namespace hone::client
