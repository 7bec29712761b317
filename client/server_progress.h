#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/command.h"
#include "client/live_lines.h"
#include "client/task_table.h"
#include "proto/farm_messages.h"

namespace hone::client {

/// How a watched session stands, from its events. Not thread-safe.
class ServerProgress {
 public:
  struct Task {
    TaskRow row;
    std::string workload;  ///< hash
    bool compared = false, replaced = false;
  };
  /// `budget`: known only to the client that began the session.
  explicit ServerProgress(std::vector<Task> tasks, std::optional<TuneBudget> budget = std::nullopt)
      : tasks_(std::move(tasks)), budget_(budget) {}

  /// The rooflines that its rows tell, ns, by task; 0: unknown.
  void SetBounds(const std::vector<double>& bounds_ns);
  void Take(const proto::SessionEvent& event);
  /// What the server says of the session beside its events; an error: it says nothing just now.
  void TakeRow(const absl::StatusOr<proto::SessionInfo>& row);
  /// True while the events of a session that began earlier are read up to the present.
  bool catching_up() const { return !ended_ && answered_ < before_; }

  const std::vector<Task>& tasks() const { return tasks_; }
  const proto::SessionInfo& info() const { return info_; }
  bool ended() const { return ended_; }
  int64_t answered() const { return answered_; }
  const std::map<measure::Outcome, int64_t>& failures() const { return failures_; }
  /// Σ count · latency of the tasks that have a best, ns; of the defaults: 0 where one of them is
  /// not known here, because another session of the same search measured it.
  double TotalNs(bool best) const;
  std::vector<TaskRow> Rows() const;
  /// Seconds are those since honed accepted the session, by its clock and this one.
  TuneState State(const WallClock& clock) const;
  /// The same as a line for a program that reads --json.
  std::string Json(const WallClock& clock) const;

 private:
  std::string Kernels() const;
  double Seconds(const WallClock& clock) const;
  int64_t Candidates() const { return std::max(answered_, info_.attempts); }

  std::vector<Task> tasks_;
  std::optional<TuneBudget> budget_;
  std::map<int64_t, int> open_;  ///< task of an attempt
  std::map<int64_t, bool> is_default_;
  proto::SessionInfo info_;
  bool ended_ = false;
  bool silent_ = false;  ///< the server
  int64_t answered_ = 0;
  int64_t before_ = 0;  ///< answered when the watch began
  std::map<measure::Outcome, int64_t> failures_;
};

/// Shows it as `hone tune` without a server does (TuneProgress). One thread.
class ServerProgressView {
 public:
  explicit ServerProgressView(CommandContext& context) : context_(context) {}
  void Show(const ServerProgress& progress);
  /// Takes the live table away, as the result has one too. A program that reads JSON gets the last
  /// state, whenever its last line was.
  void End(const ServerProgress& progress);

 private:
  CommandContext& context_;
  int64_t shown_ns_ = INT64_MIN / 2;
  std::optional<int64_t> begun_ns_;
  LiveLines table_;
};

}  // namespace hone::client
