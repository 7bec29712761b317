#pragma once

#include <string>

#include "absl/status/status.h"

#include "schedule/schedule.h"
#include "schedule/trace.h"

namespace hone::schedule {

/// Writes a Trace and applies it as it grows, so that rules can ask what the Stages look like by
/// now. The first illegal instruction sticks: everything after it is ignored and `status` tells.
class TraceWriter {
 public:
  explicit TraceWriter(const ir::Workload& workload) : schedule_(workload) {}

  /// Appends one instruction in text form.
  void Emit(const std::string& instruction);
  /// The name the next new Stage will have, "s7".
  std::string NextStage() const;

  const Schedule& schedule() const { return schedule_; }
  const ir::Workload& workload() const { return schedule_.workload; }
  const ir::Stage& stage(int id) const { return schedule_.workload.stages[id]; }
  const std::string& name(int id) const { return schedule_.workload.stages[id].name; }
  const Trace& trace() const { return trace_; }
  const absl::Status& status() const { return status_; }

 private:
  Schedule schedule_;
  Trace trace_;
  absl::Status status_;
};

}  // namespace hone::schedule
