#include "client/log_holdings.h"

#include <algorithm>
#include <filesystem>

#include "fmt/format.h"

#include "base/status.h"
#include "db/log_file.h"
#include "search/search_event.h"
#include "search/tuning_session.h"

namespace hone::client {
// As search::TuningSession finds what it goes on with.
absl::StatusOr<UnfinishedSession> FindUnfinished(db::Database& log, const std::string& request) {
  UnfinishedSession unfinished;
  HONE_ASSIGN_OR_RETURN(const std::vector<db::StoredSession> sessions, log.Sessions());
  const auto last = std::find_if(
      sessions.rbegin(), sessions.rend(),
      [&](const db::StoredSession& s) { return !s.merged && s.session.request == request; });
  if (last == sessions.rend()) return unfinished;
  HONE_ASSIGN_OR_RETURN(const std::vector<db::Event> events, log.EventsOf(last->session.id));
  if (events.empty() || events.back().type == search::FinishedEvent::kType) return unfinished;
  unfinished.id = last->session.id.ToHex();
  for (const db::Event& event : events) {
    unfinished.so_far.answered += event.type == search::ResultEvent::kType ? 1 : 0;
    const auto elapsed = search::EventAs<search::ElapsedEvent>(event);
    if (elapsed) unfinished.so_far.seconds = std::max(unfinished.so_far.seconds, elapsed->seconds);
  }
  return unfinished;
}

int64_t LogHoldings::NumExact() const {
  return std::count_if(tasks.begin(), tasks.end(), [](const Task& task) {
    return task.rung == "exact" || task.rung == "predicted";
  });
}

absl::StatusOr<LogHoldings> ReadHoldings(const std::string& path, LogName name,
                                         const LogTerms& terms,
                                         const std::vector<search::TuningTask>& tasks,
                                         const ir::Target& target, const std::string& request) {
  LogHoldings holdings;
  holdings.tasks.resize(tasks.size(), {"default", 0});
  std::error_code error;
  holdings.exists = std::filesystem::exists(path, error);
  if (!holdings.exists) return holdings;
  {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::LogFile> log, OpenUserLog(path, {}, name));
    HONE_ASSIGN_OR_RETURN(holdings.unfinished, FindUnfinished(*log, request));
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<db::LogFile> log, OpenUserLog(path, {}, name));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<LogTraceSource> source,
                        LogTraceSource::Create(std::move(log), terms));
  source->BeginModel(search::ModelHashOf(tasks));
  for (size_t i = 0; i < tasks.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const LogAnswer answer,
                          source->Look(*tasks[i].workload, tasks[i].hash.ToHex(), target));
    holdings.tasks[i] = {answer.found.rung, answer.median_ns};
  }
  return holdings;
}

std::string HoldingsText(const LogHoldings& holdings) {
  if (!holdings.exists) return "there is no such log yet\n";
  std::string text = fmt::format("the log has records of {} of {} tasks\n", holdings.NumExact(),
                                 holdings.tasks.size());
  if (!holdings.unfinished.id.empty()) {
    text += fmt::format("it would go on with session {}, which has used {} of its time\n",
                        holdings.unfinished.id, Duration(holdings.unfinished.so_far.seconds));
  }
  return text;
}

}  // namespace hone::client
