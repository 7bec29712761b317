#include "search/search_event.h"

#include <array>

#include "fmt/format.h"

#include "base/core/check.h"
#include "base/core/random_id.h"

namespace hone::search {
namespace {

constexpr std::array<std::string_view, 4> kTaskEnds = {"won", "lost", "confirmed", "put_back"};

/// A task's number, which is 0 or more.
int TaskIn(Words& words) {
  const int task = words.Number<int>();
  if (task < 0) words.SetBad();
  return task;
}

std::string All(Words& words) { return std::string(words.empty() ? "" : words.Rest()); }

template <typename T>
T TimesOf(Words& words) {
  T event;
  event.task = TaskIn(words);
  event.default_ns = words.Number<double>();
  event.best_ns = words.Number<double>();
  return event;
}

/// Tries one type after another, from the I-th of the variant on.
template <size_t I = 1>
absl::StatusOr<SearchEvent> ParseFrom(const db::Event& event) {
  if constexpr (I == std::variant_size_v<SearchEvent>) {
    return SearchEvent();
  } else {
    using T = std::variant_alternative_t<I, SearchEvent>;
    if (event.type != T::kType) return ParseFrom<I + 1>(event);
    if (auto read = EventAs<T>(event)) return SearchEvent(*std::move(read));
    return absl::DataLossError(
        fmt::format("the log's event `{} {}` cannot be read", event.type, event.payload));
  }
}

}  // namespace

JoinEvent JoinEvent::Read(Words& words) { return {All(words)}; }

std::string ProposedEvent::Text() const {
  const std::string text = fmt::format("{} {} {} {}", attempt, task, point, ProposerName(proposer));
  return member == Hash128{} ? text : text + " " + member.ToHex();
}

ProposedEvent ProposedEvent::Read(Words& words) {
  ProposedEvent event;
  event.attempt = words.Number<int64_t>();
  event.task = TaskIn(words);
  event.point = words.Number<uint64_t>();
  const std::optional<Proposer> proposer = ParseProposer(words.Word());
  if (!proposer) words.SetBad();
  event.proposer = proposer.value_or(Proposer::kRandom);
  if (!words.empty()) event.member = words.Hash();
  return event;
}

std::string ResultEvent::Text() const {
  const std::string text =
      fmt::format("{} {} {} {}", attempt, measure::ToString(outcome), median_ns, cost_seconds);
  return part_ns > 0 ? fmt::format("{} {} {}", text, part_ns, part) : text;
}

ResultEvent ResultEvent::Read(Words& words) {
  ResultEvent event;
  event.attempt = words.Number<int64_t>();
  const auto outcome = measure::ParseOutcome(words.Word());
  if (!outcome) words.SetBad();
  event.outcome = outcome.value_or(measure::Outcome::kOk);
  event.median_ns = words.Number<double>();
  event.cost_seconds = words.Number<double>();
  if (words.empty()) return event;
  event.part_ns = words.Number<double>();
  event.part = words.Number<double>();
  return event;
}

// A line of the member, whose charge is left out where it is 0, and a line a task.
std::string MemberEvent::Text() const {
  std::string text = fmt::format("{} {} {} {}", member.ToHex(), trials, seed, first_attempt);
  if (charged > 0) text += fmt::format(" {}", charged);
  for (const Task& t : tasks) {
    text +=
        fmt::format("\n{} {} {} {} {}", t.workload.ToHex(), t.count, t.flop, t.bound_ns, t.space);
  }
  return text;
}

MemberEvent MemberEvent::Read(Words& words) {
  MemberEvent event;
  Words first = words.Line();
  event.member = first.Hash();
  event.trials = first.Number<int64_t>();
  event.seed = first.Number<uint64_t>();
  event.first_attempt = first.Number<int64_t>();
  if (!first.empty()) event.charged = first.Number<int64_t>();
  if (first.bad()) words.SetBad();
  while (!words.empty()) {
    Words line = words.Line();
    Task& task = event.tasks.emplace_back();
    task.workload = line.Hash();
    task.count = line.Number<int>();
    task.flop = line.Number<double>();
    task.bound_ns = line.Number<double>();
    task.space = line.Word();
    if (line.bad()) words.SetBad();
  }
  return event;
}

std::string ImportedEvent::Text() const { return fmt::format("{} {}", task, point); }

ImportedEvent ImportedEvent::Read(Words& words) {
  const int task = TaskIn(words);
  return {task, words.Number<uint64_t>()};
}

std::string ComparedEvent::Text() const {
  return fmt::format("{} {} {}", task, default_ns, best_ns);
}

ComparedEvent ComparedEvent::Read(Words& words) { return TimesOf<ComparedEvent>(words); }

std::string FoundEvent::Text() const { return fmt::format("{} {} {}", task, default_ns, best_ns); }

FoundEvent FoundEvent::Read(Words& words) { return TimesOf<FoundEvent>(words); }

std::string VerdictEvent::Text() const {
  return fmt::format("{} {} {:.1f} {:.1f}", task, kTaskEnds[static_cast<size_t>(end)], default_ns,
                     best_ns);
}

VerdictEvent VerdictEvent::Read(Words& words) {
  VerdictEvent event;
  event.task = TaskIn(words);
  const auto* const end = std::find(kTaskEnds.begin(), kTaskEnds.end(), words.Word());
  if (end == kTaskEnds.end()) {
    words.SetBad();
  } else {
    event.end = static_cast<TaskEnd>(end - kTaskEnds.begin());
  }
  event.default_ns = words.Number<double>();
  event.best_ns = words.Number<double>();
  return event;
}

std::string ModelEvent::Text() const { return fmt::format("{} {}", digest, rows); }

ModelEvent ModelEvent::Read(Words& words) {
  ModelEvent event;
  event.digest = words.Word();
  event.rows = words.Number<int64_t>();
  return event;
}

std::string ElapsedEvent::Text() const { return fmt::format("{:.3f}", seconds); }

InterruptedEvent InterruptedEvent::Read(Words& words) { return {All(words)}; }

FinishedEvent FinishedEvent::Read(Words& words) { return {All(words)}; }

db::Event StreamEvent(const Hash128& stream, const SearchEvent& event) {
  db::Event out;
  out.id = FactId();
  out.session = stream;
  std::visit(
      [&](const auto& typed) {
        if constexpr (std::is_same_v<std::decay_t<decltype(typed)>, std::monostate>) {
          HONE_CHECK(false) << "no event of a search";
        } else {
          out.type = typed.kType;
          out.payload = typed.Text();
        }
      },
      event);
  return out;
}

absl::StatusOr<SearchEvent> ParseEvent(const db::Event& event) { return ParseFrom(event); }

}  // namespace hone::search
