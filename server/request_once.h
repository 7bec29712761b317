#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/farm_loop.h"
#include "server/session_log.h"

namespace hone::server {

/// A call that changes something, as its caller names it.
struct UnaryRequest {
  std::string caller;  ///< identity
  std::string id;      ///< the caller's own: 1 to proto::kMaxNameBytes of what prints
  std::string body;    ///< what is asked; the same id with another is an error
};

/// The answer that a request had, or empty: it is the first. kAlreadyExists: the id was used with
/// another body; kInvalidArgument: no such id.
absl::StatusOr<std::string> FirstAnswer(db::FarmStore& store, const UnaryRequest& request);

/// The same beside the loop: for what takes effect before its commit, and where nothing may be
/// written just now.
absl::StatusOr<std::string> FirstAnswer(SharedReader& reader, const UnaryRequest& request);

/// The row that keeps an answer (for 7 days), to stand in the unit with the request's effect.
db::FarmRequest AnswerOf(const UnaryRequest& request, std::string answer, int64_t now_ms);

/// Runs on the loop a work that begins with FirstAnswer and ends with AnswerOf. Whatever else has
/// this caller and id comes in another commit, and finds the answer. Once more when `prepare` says
/// kInvalidArgument: something that it depends on was being committed. Not on the loop's thread.
absl::Status RunAnswered(FarmLoop& loop, const UnaryRequest& request, FarmLoop::Work work);

/// Makes `change` durable with its answer, once however often the caller asks; what fails leaves no
/// answer. Not on the loop's thread.
/// A `change` of the Farm itself comes with what takes it back (FarmLoop::Work::undo).
absl::Status RunOnce(FarmLoop& loop, const UnaryRequest& request, int64_t now_ms,
                     const std::function<absl::Status(Farm& farm, db::FarmUnit& unit,
                                                      int64_t now_ns, int64_t now_ms)>& change,
                     std::function<void(Farm& farm)> undo = {});

}  // namespace hone::server
