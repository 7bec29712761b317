#include <atomic>
#include <csignal>
#include <limits>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/live_watch.h"
#include "client/server_connection.h"
#include "client/server_options.h"
#include "client/server_progress.h"
#include "client/terminal_text.h"
#include "client/text_table.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

constexpr int kMostListed = 100, kMostSearched = 10'000;
constexpr std::string_view kStates[] = {"waiting",  "running",   "cancelling",
                                        "finished", "cancelled", "failed"};

std::atomic<bool> g_detach{false};
void OnSignal(int) { g_detach.store(true); }

std::string_view StateName(db::SessionState state) { return kStates[static_cast<size_t>(state)]; }

ordered_json InfoJson(const proto::SessionInfo& info) {
  return {{"session", info.id.ToHex()},
          {"state", std::string(StateName(info.state))},
          {"reason", info.reason},
          {"owner", info.owner},
          {"project", info.project},
          {"model", info.model},
          {"target", info.target},
          {"device_class", info.device_class},
          {"created_ms", info.created_ms},
          {"attempts", info.attempts},
          {"tasks", info.tasks}};
}

std::string InfoText(const proto::SessionInfo& info) {
  return TerminalText(fmt::format("{}  {:<10} {:<12} {:<20} {:>4} tasks {:>7} measured  {}",
                                  info.id.ToHex(), StateName(info.state), info.owner, info.model,
                                  info.tasks, info.attempts, info.reason)) +
         "\n";
}

/// Long enough to be one of a hundred, short enough for a line.
constexpr size_t kShortId = 8;

std::string ListText(const std::vector<proto::SessionInfo>& infos, bool wide, int64_t now_ms) {
  std::vector<std::string> header = {"SESSION", "STATE",    "AGE",  "OWNER",
                                     "TASKS",   "MEASURED", "MODEL"};
  if (wide) header.insert(header.end(), {"PROJECT", "TARGET", "DEVICE CLASS"});
  header.emplace_back("REASON");
  TextTable table(std::move(header));
  for (const proto::SessionInfo& info : infos) {
    std::vector<std::string> row = {wide ? info.id.ToHex() : info.id.ToHex().substr(0, kShortId),
                                    std::string(StateName(info.state)),
                                    AgeText(now_ms, info.created_ms),
                                    info.owner,
                                    fmt::format("{}", info.tasks),
                                    fmt::format("{}", info.attempts),
                                    info.model};
    if (wide) row.insert(row.end(), {info.project, info.target, info.device_class});
    row.push_back(info.reason);
    table.Add(std::move(row));
  }
  return table.Text();
}

/// The session whose id begins so.
absl::StatusOr<Hash128> FindId(ServerConnection& server, const std::string& begin,
                               const std::string& action) {
  if (const auto id = Hash128::FromHex(begin)) return *id;
  const auto usage = [](const std::string& message) {
    return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
  };
  if (begin.empty() || begin.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return usage(fmt::format(
        "name the session by its 32 hexadecimal digits, or the first of them: hone session {} "
        "SESSION",
        action));
  }
  HONE_ASSIGN_OR_RETURN(const auto infos, server.ListSessions(kMostSearched));
  std::vector<Hash128> found;
  for (const proto::SessionInfo& info : infos) {
    if (info.id.ToHex().starts_with(begin)) found.push_back(info.id);
  }
  if (found.size() == 1) return found.front();
  return usage(found.empty()
                   ? fmt::format("none of the latest {} sessions begins with {}; hone session list "
                                 "--all shows them",
                                 kMostSearched, begin)
                   : fmt::format("{} sessions begin with {}; give more digits (hone session list "
                                 "-o wide)",
                                 found.size(), begin));
}

void SetResult(CommandContext& context, const ordered_json& object) {
  context.json_result = JsonText(object);
}

absl::Status Watch(CommandContext& context, const ServerAddress& address, ServerConnection& server,
                   const Hash128& id) {
  HONE_ASSIGN_OR_RETURN(const proto::SessionInfo info, server.FindSession(id));
  std::vector<ServerProgress::Task> tasks;
  for (int i = 0; i < info.tasks; ++i)
    tasks.push_back({.row = {.name = fmt::format("task {}", i)}, .workload = {}});
  ServerProgress progress(std::move(tasks));
  g_detach.store(false);
  std::signal(SIGINT, OnSignal);
  const absl::Status watched = WatchLive(
      context, address, server, id, progress, [](const proto::SessionEvent&) {},
      [] { return g_detach.load(); });
  std::signal(SIGINT, SIG_DFL);
  if (absl::IsCancelled(watched) && g_detach.load()) {
    return absl::CancelledError(fmt::format(
        "detached; session {0} goes on without you. To come back: hone session watch {0} {1}; to "
        "end it: hone session cancel {0} {1}",
        id.ToHex(), ServerWords(context.arguments)));
  }
  HONE_RETURN_IF_ERROR(watched);
  SetResult(context, InfoJson(progress.info()));
  if (!context.json()) {
    context.out << progress.State(SystemWallClock()).Line() << "\n" << InfoText(progress.info());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunSession(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  const std::string action = arguments.Text("ACTION");
  if (action == "list" && arguments.Has("SESSION")) {
    return WithExitCode(
        absl::InvalidArgumentError(fmt::format("\"{0}\" is one argument too many: list shows all "
                                               "sessions; for one: hone session show {0}",
                                               arguments.Text("SESSION"))),
        ExitCode::kUsage);
  }
  HONE_ASSIGN_OR_RETURN(const ServerAddress address, ReadServer(arguments));
  HONE_ASSIGN_OR_RETURN(const auto server, ServerConnection::Open(address));
  if (action == "list") {
    const bool all = arguments.Flag("all");
    HONE_ASSIGN_OR_RETURN(
        auto infos, server->ListSessions(all ? std::numeric_limits<int>::max() : kMostListed + 1));
    const bool more = !all && infos.size() > kMostListed;
    if (more) infos.pop_back();
    auto list = ordered_json::array();
    for (const proto::SessionInfo& info : infos) list.push_back(InfoJson(info));
    if (!context.json()) {
      const int64_t now_ms = SystemWallClock().UnixNs() / 1'000'000;
      context.out << ListText(infos, arguments.Text("format") == "wide", now_ms);
    }
    if (more) {
      context.err << fmt::format("these are the latest {}; --all lists all\n", kMostListed);
    }
    SetResult(context, {{"sessions", std::move(list)}, {"more", more}});
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(const Hash128 id, FindId(*server, arguments.TextOr("SESSION", ""), action));
  if (action == "watch") return Watch(context, address, *server, id);
  if (action == "cancel") HONE_RETURN_IF_ERROR(server->CancelSession(id));
  HONE_ASSIGN_OR_RETURN(const proto::SessionInfo info, server->FindSession(id));
  SetResult(context, InfoJson(info));
  if (!context.json()) context.out << InfoText(info);
  return absl::OkStatus();
}

}  // namespace hone::client
