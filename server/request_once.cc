#include "server/request_once.h"

#include <optional>
#include <utility>

#include "fmt/format.h"

#include "base/sha256.h"
#include "base/status.h"
#include "proto/field_check.h"

namespace hone::server {

absl::StatusOr<std::string> FirstAnswer(db::FarmStore& store, const UnaryRequest& request) {
  HONE_RETURN_IF_ERROR(proto::Name(request.id, "request_id").status());
  HONE_ASSIGN_OR_RETURN(const std::optional<db::FarmRequest> known,
                        store.FindRequest(request.caller, request.id));
  if (!known) return std::string();
  if (known->digest == Sha256Hex(request.body)) return known->answer;
  return absl::AlreadyExistsError(
      fmt::format("request id '{}' was used for another request; make a new id", request.id));
}

absl::StatusOr<std::string> FirstAnswer(SharedReader& reader, const UnaryRequest& request) {
  return reader.With([&](db::LogFile& log) -> absl::StatusOr<std::string> {
    HONE_ASSIGN_OR_RETURN(const auto store, db::FarmStore::Open(log));
    return FirstAnswer(*store, request);
  });
}

db::FarmRequest AnswerOf(const UnaryRequest& request, std::string answer, int64_t now_ms) {
  return {.caller = request.caller,
          .id = request.id,
          .digest = Sha256Hex(request.body),
          .answer = std::move(answer),
          .created_ms = now_ms};
}

absl::Status RunAnswered(FarmLoop& loop, const UnaryRequest& request, FarmLoop::Work work) {
  work.request = request.caller + "\n" + request.id;
  const absl::Status first = loop.Ask(work);
  // What is wrong with the request itself stays wrong.
  return absl::IsInvalidArgument(first) ? loop.Ask(work) : first;
}

absl::Status RunOnce(FarmLoop& loop, const UnaryRequest& request, int64_t now_ms,
                     const std::function<absl::Status(Farm& farm, db::FarmUnit& unit,
                                                      int64_t now_ns, int64_t now_ms)>& change,
                     std::function<void(Farm& farm)> undo) {
  const auto prepare = [&](Farm& farm, db::FarmStore& store, db::FarmUnit& unit,
                           int64_t now_ns) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const std::string first, FirstAnswer(store, request));
    if (!first.empty()) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(change(farm, unit, now_ns, now_ms));
    unit.changes.push_back(AnswerOf(request, "done", now_ms));
    return absl::OkStatus();
  };
  return RunAnswered(loop, request, {.prepare = prepare, .done = {}, .undo = std::move(undo)});
}

}  // namespace hone::server
