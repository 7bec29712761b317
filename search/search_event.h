#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/hash128.h"
#include "base/core/words.h"
#include "db/record.h"
#include "measure/outcome.h"
#include "search/task_search.h"

// The events of searches and of sessions, one struct a type. What they mean stands in
// docs/formats/log.md. Each has the type's name, the payload's text, and the reader of that text.
// A task is a number of the search or session whose event it is, from 0 on; times are ns.
namespace hone::search {

/// How a session or a search begins.
struct JoinEvent {
  static constexpr std::string_view kType = "join";
  std::string of;  ///< Tuner::Fingerprint; of a member: its search's stream
  std::string Text() const { return of; }
  static JoinEvent Read(Words& words);
};

struct ProposedEvent {
  static constexpr std::string_view kType = "proposed";
  int64_t attempt = 0;
  int task = 0;
  uint64_t point = 0;
  Proposer proposer = Proposer::kRandom;
  Hash128 member{};  ///< whose budget it uses; zero (Tuner::kAlone) where there is but one
  std::string Text() const;
  static ProposedEvent Read(Words& words);
  bool operator==(const ProposedEvent&) const = default;
};

struct ResultEvent {
  static constexpr std::string_view kType = "result";
  int64_t attempt = 0;
  measure::Outcome outcome = measure::Outcome::kOk;
  double median_ns = 0, cost_seconds = 0;
  double part_ns = 0;  ///< what a part of the work said of a whole run; 0: none was run
  double part = 1;     ///< how much of the work median_ns rests on
  std::string Text() const;
  static ResultEvent Read(Words& words);
};

/// A session has joined a search that others may share.
struct MemberEvent {
  static constexpr std::string_view kType = "member";
  struct Task {
    Hash128 workload;
    int count = 1;
    double flop = 0, bound_ns = 0;
    std::string space;  ///< its hash
    bool operator==(const Task&) const = default;
  };
  Hash128 member;
  int64_t trials = 0;
  uint64_t seed = 0;
  int64_t first_attempt = 0, charged = 0;
  std::vector<Task> tasks;
  std::string Text() const;
  static MemberEvent Read(Words& words);
  bool operator==(const MemberEvent&) const = default;
};

struct LeaveEvent {
  static constexpr std::string_view kType = "leave";
  Hash128 member;
  std::string Text() const { return member.ToHex(); }
  static LeaveEvent Read(Words& words) { return {words.Hash()}; }
};

struct ImportedEvent {
  static constexpr std::string_view kType = "imported";
  int task = 0;
  uint64_t point = 0;
  std::string Text() const;
  static ImportedEvent Read(Words& words);
};

struct ComparedEvent {
  static constexpr std::string_view kType = "compared";
  int task = 0;
  double default_ns = 0, best_ns = 0;
  std::string Text() const;
  static ComparedEvent Read(Words& words);
};

struct FoundEvent {
  static constexpr std::string_view kType = "found";
  int task = 0;
  double default_ns = 0, best_ns = 0;  ///< 0: unknown
  std::string Text() const;
  static FoundEvent Read(Words& words);
};

/// What the comparisons at the end say of a task.
enum class TaskEnd : uint8_t { kWon, kLost, kConfirmed, kPutBack };

struct VerdictEvent {
  static constexpr std::string_view kType = "verdict";
  int task = 0;
  TaskEnd end = TaskEnd::kLost;
  double default_ns = 0, best_ns = 0;
  std::string Text() const;
  static VerdictEvent Read(Words& words);
};

struct ModelEvent {
  static constexpr std::string_view kType = "model";
  std::string digest;  ///< of a blob
  int64_t rows = 0;
  std::string Text() const;
  static ModelEvent Read(Words& words);
};

struct ElapsedEvent {
  static constexpr std::string_view kType = "elapsed";
  double seconds = 0;
  std::string Text() const;
  static ElapsedEvent Read(Words& words) { return {words.Number<double>()}; }
};

/// honed replays a search; and has done so.
struct OpeningEvent {
  static constexpr std::string_view kType = "opening";
  std::string Text() const { return ""; }
  static OpeningEvent Read(Words&) { return {}; }
};
struct OpenedEvent {
  static constexpr std::string_view kType = "opened";
  std::string Text() const { return ""; }
  static OpenedEvent Read(Words&) { return {}; }
};

/// The last event of a run that was stopped; of a session or a search.
struct InterruptedEvent {
  static constexpr std::string_view kType = "interrupted";
  std::string why;
  std::string Text() const { return why; }
  static InterruptedEvent Read(Words& words);
};
struct FinishedEvent {
  static constexpr std::string_view kType = "finished";
  std::string why;
  std::string Text() const { return why; }
  static FinishedEvent Read(Words& words);
};

/// std::monostate: an event of another kind, which others read (db/model_verdict.h).
using SearchEvent =
    std::variant<std::monostate, JoinEvent, ProposedEvent, ResultEvent, MemberEvent, LeaveEvent,
                 ImportedEvent, ComparedEvent, FoundEvent, VerdictEvent, ModelEvent, ElapsedEvent,
                 OpeningEvent, OpenedEvent, InterruptedEvent, FinishedEvent>;

/// As the log takes it, with a fresh id. `stream` is the session or search whose event it is.
/// std::monostate is a programmer error.
db::Event StreamEvent(const Hash128& stream, const SearchEvent& event);

/// kDataLoss: of a type of these, but not in its form.
absl::StatusOr<SearchEvent> ParseEvent(const db::Event& event);

/// The event, if it is one of that type and in its form.
template <typename T>
std::optional<T> EventAs(const db::Event& event) {
  if (event.type != T::kType) return std::nullopt;
  Words words(event.payload);
  T read = T::Read(words);
  return words.bad() ? std::nullopt : std::optional<T>(std::move(read));
}

}  // namespace hone::search
