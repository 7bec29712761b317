#pragma once

#include <functional>
#include <optional>
#include <string>

#include "client/command.h"
#include "client/server_connection.h"
#include "db/model_verdict.h"

namespace hone::client {

/// What a farm says of a whole model.
struct FarmJudgement {
  std::optional<db::ModelVerdict> verdict;
  std::string skipped;  ///< why there is none
};

/// After a session has finished: compiles the model with default schedules and with those that the
/// server knows, leaves both packages there without their constants, and waits until a device of
/// the session's class has run them in turns. A failure is no failure of the tuning: it is said in
/// `skipped`. `stop`, asked all the time: nobody waits any more.
FarmJudgement JudgeOnServer(CommandContext& context, const ServerAddress& address,
                            const proto::SessionSpec& spec, const proto::SessionInfo& session,
                            const std::function<bool()>& stop);

}  // namespace hone::client
