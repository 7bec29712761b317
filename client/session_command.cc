#include <atomic>
#include <csignal>

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

namespace hone::client {
namespace {

using nlohmann::ordered_json;

constexpr int kMostListed = 100;
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
        absl::InvalidArgumentError(fmt::format(
            "\"{0}\" is one argument too many: list shows all; of one: hone session show {0}",
            arguments.Text("SESSION"))),
        ExitCode::kUsage);
  }
  HONE_ASSIGN_OR_RETURN(const ServerAddress address, ReadServer(arguments));
  HONE_ASSIGN_OR_RETURN(const auto server, ServerConnection::Open(address));
  if (action == "list") {
    HONE_ASSIGN_OR_RETURN(const auto infos, server->ListSessions(kMostListed));
    auto list = ordered_json::array();
    for (const proto::SessionInfo& info : infos) {
      list.push_back(InfoJson(info));
      if (!context.json()) context.out << InfoText(info);
    }
    SetResult(context, {{"sessions", std::move(list)}});
    return absl::OkStatus();
  }
  const auto id = Hash128::FromHex(arguments.TextOr("SESSION", ""));
  if (!id) {
    return WithExitCode(
        absl::InvalidArgumentError(fmt::format(
            "name the session by its 32 hexadecimal digits: hone session {} SESSION", action)),
        ExitCode::kUsage);
  }
  if (action == "watch") return Watch(context, address, *server, *id);
  if (action == "cancel") HONE_RETURN_IF_ERROR(server->CancelSession(*id));
  HONE_ASSIGN_OR_RETURN(const proto::SessionInfo info, server->FindSession(*id));
  SetResult(context, InfoJson(info));
  if (!context.json()) context.out << InfoText(info);
  return absl::OkStatus();
}

}  // namespace hone::client
