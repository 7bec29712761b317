#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "server/web/failures.h"
#include "server/web/page_source.h"
#include "server/web/session_story.h"

// The page's JSON, version 1: fields are added, never removed or retyped. Durations are seconds or
// milliseconds by their names; what is not known is null.
namespace hone::server::web {

inline constexpr int kPageJsonVersion = 1;

/// All of /api/v1/farm but its "sessions".
nlohmann::ordered_json FarmJson(const ProcessFacts& facts, const FarmView& view,
                                const std::string& trouble, int64_t unix_ms);

/// A session with at most `points` points of its curve. `complete`: all its events were read.
/// `open`: as the farm sees it; null: it does not, or has not told yet.
nlohmann::ordered_json SessionJson(const SessionRow& row, const SessionStory& story, bool complete,
                                   const OpenSessionView* open, int64_t unix_ms, size_t points);

/// `bounds_ns`: by task, of the roofline; 0 or missing: unknown.
nlohmann::ordered_json TasksJson(const SessionStory& story, const std::vector<double>& bounds_ns);
/// SessionStory::Trials.
nlohmann::ordered_json TrialsJson(const SessionStory& story);
nlohmann::ordered_json FailuresJson(const std::vector<FailureCause>& failures,
                                    const SessionStory& story);
nlohmann::ordered_json AttemptJson(const db::Attempt& attempt, const SessionStory& story);
nlohmann::ordered_json BestJson(const db::RankedRecord& best, const SessionStory& story);

/// Text of an object; what is not UTF-8 is replaced.
std::string JsonText(const nlohmann::ordered_json& object);

}  // namespace hone::server::web
