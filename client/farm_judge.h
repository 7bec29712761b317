#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/command.h"
#include "client/server_connection.h"
#include "db/model_verdict.h"

namespace hone::client {

/// The result of comparing a whole model on a farm.
struct FarmJudgement {
  std::optional<db::ModelVerdict> verdict;
  std::string skipped;  ///< why there is none
  /// Workloads that lost in the model: there is no verdict before they are put back.
  std::vector<Hash128> losing;
};

/// What a farm says of a model.
struct FarmJudgements {
  FarmJudgement schedules;                ///< default against tuned
  std::optional<FarmJudgement> branches;  ///< in turn against side by side; none: it has none
};

/// Packages of one model, without their constants.
struct JudgedPackages {
  std::string by_default, tuned;
  std::string mended;  ///< tuned, but for what is put back; empty: there is none
};

/// Leaves the packages with the server and asks until a device has compared them: `question` gets
/// their hashes. A server that was started again in between has forgotten them, and gets them
/// again. Errors are those of the calls; `stop`, as below, is none.
absl::StatusOr<FarmJudgement> AwaitJudgement(CommandContext& context, ServerConnection& server,
                                             ServerConnection::ModelQuestion question,
                                             const JudgedPackages& packages,
                                             const std::function<bool()>& stop);

/// After a session has finished: compiles the model with default schedules and with those that the
/// server knows, leaves both packages there without their constants, and waits until a device of
/// the session's class has run them in turns. Kernels that lose there are put back, and the verdict
/// is of the model without them, unless that is slower. Then the same for its branches, in turn and
/// side by side, both with the schedules that everybody who compiles the model gets. A failure does
/// not fail the tuning; `skipped` says why there is no verdict. `stop` is polled, and true ends the
/// wait.
FarmJudgements JudgeOnServer(CommandContext& context, const ServerAddress& address,
                             const proto::SessionSpec& spec, const proto::SessionInfo& session,
                             const std::function<bool()>& stop);

}  // namespace hone::client
