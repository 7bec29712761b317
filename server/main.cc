#include <pthread.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"
#include "fmt/format.h"

#include "base/credential_check.h"
#include "base/credentials.h"
#include "base/daemon_main.h"
#include "base/farm_address.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/service_notice.h"
#include "base/status.h"
#include "base/versions.h"
#include "proto/field_check.h"
#include "proto/quiet_grpc.h"
#include "server/ca.h"
#include "server/dev_farm.h"
#include "server/heap_limits.h"
#include "server/honed.h"
#include "server/issue_journal.h"
#include "server/project_shares.h"
#include "server/revoke_call.h"

namespace {

using hone::CallerRole;
using hone::DaemonOption;

constexpr char kDefaultConfig[] = "/etc/hone/honed.toml";
constexpr char kDefaultListen[] = "0.0.0.0:7421";
constexpr std::array kOptions = {
    DaemonOption("db", "/var/lib/hone/tune.db", "LOG", "the tuning log", false, false,
                 "log|database|file"),
    DaemonOption("listen", kDefaultListen, "ADDRESS", "where workers and clients connect", false,
                 false, "address|bind|port"),
    DaemonOption("tls", "/etc/hone/tls", "FOLDER", "ca.pem, cert.pem and key.pem of this server",
                 false, false, "credentials|certs|certificates|cert|key"),
    DaemonOption("insecure-loopback", "false", "", "no encryption; only on a loopback address"),
    DaemonOption("heartbeat-ms", "1000", "N", "interval of the workers' heartbeats, at least 100"),
    DaemonOption("start-by-seconds", "120", "N", "a lease that has not started by then returns"),
    DaemonOption("run-by-seconds", "60", "N", "a candidate that runs longer is ended"),
    DaemonOption("metrics-listen", "", "ADDRESS", "serve /metrics and /healthz over HTTP here",
                 false, false, "prometheus|health|healthz"),
    DaemonOption("page-listen", "", "ADDRESS",
                 "serve the page here: a loopback address (--dev: beside --listen)", false, false,
                 "web|ui|http|dashboard"),
    DaemonOption("lost-after-seconds", "20", "N", "a worker that says nothing for so long is lost"),
    DaemonOption("projects", "", "NAME=SHARE", "projects whose share of the devices is not 1", true,
                 true),
    DaemonOption("dev", "false", "",
                 "try Hone out: coordinator, one worker, the page and throw-away credentials on "
                 "this machine",
                 false, false, "try|demo|trial"),
    DaemonOption("test-kill", "", "LABEL:N", "", true),
    DaemonOption("log-level", "info", "LEVEL", "debug, info, warning or error", false, false,
                 "verbose|debug|quiet"),
    DaemonOption("server", "127.0.0.1:7421", "ADDRESS", "revoke: the honed that runs"),
    DaemonOption(
        "ca", "/etc/hone/ca", "FOLDER",
        "the authority: what it issues is audited, and revoke finds the role of a NAME there"),
    DaemonOption("out", "", "FOLDER", "issue: where the credentials go (default ./NAME)"),
    DaemonOption("days", "365", "N", "issue: how long the certificate is valid"),
    DaemonOption("config", "", "FILE", "read options from here instead of /etc/hone/honed.toml"),
    DaemonOption("check-config", "", "",
                 "check the configuration, say what is wrong with it, and end"),
    DaemonOption("help", "", "", "print this"),
    DaemonOption("man", "", "", "print the manual page: --man | man -l -"),
    DaemonOption("version", "", "", "print the version"),
};
constexpr std::array<std::string_view, 10> kKillLabels = {
    "honed.recovered", "honed.resumed",  "honed.accepted", "honed.committing", "honed.committed",
    "honed.granted",   "honed.answered", "honed.finished", "honed.copied",     "honed.sending"};
constexpr char kUsage[] =
    "honed [--db LOG] [--listen ADDRESS] [OPTION…]\n"
    "       honed --dev\n"
    "       honed init-ca [--ca FOLDER]\n"
    "       honed issue server|submit|measure|publish|admin NAME [--ca FOLDER] [--out FOLDER]\n"
    "       honed revoke [ROLE] NAME --server ADDRESS --tls FOLDER   (an admin's credentials)";

/// Workers' loops and honed's own turn ten times a second.
constexpr int64_t kLeastHeartbeatMs = 100;
/// What a Grant can say.
constexpr int64_t kMostLimitSeconds = hone::proto::kMaxMs / 1000;

absl::StatusOr<int64_t> Whole(const hone::ProgramOptions& options, const char* name,
                              int64_t least = 1, int64_t most = 1'000'000'000) {
  const std::string text = options.Text(name);
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < least || value > most) {
    return absl::InvalidArgumentError(
        fmt::format("--{} takes a whole number from {} to {}, not '{}'", name, least, most, text));
  }
  return value;
}

/// Who runs this: the user's name, or number.
std::string Actor() {
  const passwd* const user = ::getpwuid(::getuid());
  return user != nullptr ? user->pw_name : fmt::format("uid-{}", ::getuid());
}

absl::Status IssueCertificate(const hone::ProgramOptions& options, int64_t now_s) {
  const std::vector<std::string>& words = options.words();
  if (words.size() != 3) {
    return absl::InvalidArgumentError(
        "usage: honed issue server|submit|measure|publish|admin NAME [--ca FOLDER] [--out FOLDER]");
  }
  HONE_ASSIGN_OR_RETURN(const hone::server::Identity identity,
                        hone::server::ParseIdentity("spiffe://hone/" + words[1] + "/" + words[2]));
  HONE_ASSIGN_OR_RETURN(const int64_t days, Whole(options, "days"));
  const std::string out = options.Text("out").empty() ? words[2] : options.Text("out");
  HONE_RETURN_IF_ERROR(hone::server::Issue({.ca_folder = options.Text("ca"),
                                            .role = identity.role,
                                            .name = identity.name,
                                            .out_folder = out,
                                            .now_unix_s = now_s,
                                            .seconds = days * 86400,
                                            .actor = Actor()}));
  fmt::print("{}/: credentials of {}\n", out, identity.Uri());
  return absl::OkStatus();
}

/// Whether the authority's journal is there and has no certificate of this identity. A name with a
/// typing error is refused as readily, and the stolen certificate stays good.
bool NeverIssued(const std::string& ca_folder, const std::string& uri) {
  const std::vector<hone::db::FarmAudit> journal = hone::server::IssueIntake(ca_folder, {}).Take();
  return !journal.empty() && std::ranges::none_of(journal, [&](const hone::db::FarmAudit& entry) {
    return entry.action == "issue" && entry.subject == uri;
  });
}

absl::Status Revoke(const hone::ProgramOptions& options) {
  const std::vector<std::string>& words = options.words();
  if (words.size() != 2 && words.size() != 3) {
    return absl::InvalidArgumentError("usage: honed revoke [ROLE] NAME");
  }
  HONE_ASSIGN_OR_RETURN(const hone::server::Identity identity,
                        words.size() == 2 ? hone::server::IssuedUnder(options.Text("ca"), words[1])
                                          : hone::server::ParseIdentity("spiffe://hone/" +
                                                                        words[1] + "/" + words[2]));
  HONE_RETURN_IF_ERROR(hone::server::MayRevoke(identity));
  const auto honed = hone::DialAddress(options.Text("server"));
  if (!honed.ok()) return hone::Annotate(honed.status(), "--server");
  // Whether the caller may is honed's to say.
  HONE_ASSIGN_OR_RETURN(
      const hone::Credentials admin,
      hone::ReadConfiguredCredentials(options.Text("tls"),
                                      {.roles = {CallerRole::kAdmin, CallerRole::kSubmit,
                                                 CallerRole::kPublish, CallerRole::kMeasure}}));
  HONE_RETURN_IF_ERROR(
      hone::AsServerError(hone::server::CallRevoke(*honed, admin, identity.Uri())));
  fmt::print("{} is refused from now on\n", identity.Uri());
  if (NeverIssued(options.Text("ca"), identity.Uri())) {
    fmt::print(stderr, "{}/{} has no certificate of that name: is it spelled as it was issued?\n",
               options.Text("ca"), hone::server::kIssueJournal);
  }
  return absl::OkStatus();
}

absl::StatusOr<hone::server::HonedOptions> HonedOptionsOf(const hone::ProgramOptions& options,
                                                          int64_t now_s) {
  hone::server::HonedOptions honed;
  honed.log_path = options.Text("db");
  honed.ca_folder = options.Text("ca");
  const auto listen = hone::ListenAddress(options.Text("listen"));
  if (!listen.ok()) return hone::Annotate(listen.status(), "--listen");
  honed.listen = *listen;
  honed.builder_version = fmt::format("{}+{}", hone::kBuilderVersion, HONE_LLVM_MAJOR_MINOR);
  honed.page_listen = options.Text("page-listen");
  honed.metrics_listen = options.Text("metrics-listen");
  honed.versions = fmt::format(R"({{"hone":"{}","builder":"{}","protocol":{},"xgboost":"{}"}})",
                               hone::kProgramVersion, honed.builder_version, hone::kProtocolVersion,
                               HONE_XGBOOST_VERSION);
  HONE_ASSIGN_OR_RETURN(const int64_t heartbeat_ms,
                        Whole(options, "heartbeat-ms", kLeastHeartbeatMs));
  HONE_ASSIGN_OR_RETURN(const int64_t start_by_s,
                        Whole(options, "start-by-seconds", 1, kMostLimitSeconds));
  HONE_ASSIGN_OR_RETURN(const int64_t run_by_s,
                        Whole(options, "run-by-seconds", 1, kMostLimitSeconds));
  HONE_ASSIGN_OR_RETURN(const int64_t lost_after_s, Whole(options, "lost-after-seconds"));
  honed.policy.heartbeat_ns = heartbeat_ms * 1'000'000;
  honed.policy.lost_after_ns = lost_after_s * 1'000'000'000;
  if (honed.policy.lost_after_ns < 3 * honed.policy.heartbeat_ns) {
    return absl::InvalidArgumentError("--lost-after-seconds must be at least three heartbeats");
  }
  honed.policy.start_by_ns = start_by_s * 1'000'000'000;
  honed.policy.run_by_ns = run_by_s * 1'000'000'000;
  // Workers are told durations shorter by the grace.
  for (const auto& [name, ns] : {std::pair("start-by-seconds", honed.policy.start_by_ns),
                                 std::pair("run-by-seconds", honed.policy.run_by_ns)}) {
    if (ns > honed.policy.grace_ns) continue;
    return absl::InvalidArgumentError(
        fmt::format("--{} must exceed 5: workers give up 5 s before honed does", name));
  }
  HONE_ASSIGN_OR_RETURN(honed.shares, hone::server::ParseShares(options.List("projects")));
  if (options.Flag("dev")) return honed;
  if (options.Flag("insecure-loopback")) {
    honed.transport = hone::server::Transport::kPlaintext;
  } else {
    // Nobody would connect to a server whose certificate is over, and nobody would say so.
    const std::string& folder = options.Text("tls");
    auto credentials = hone::ReadConfiguredCredentials(
        folder, {.roles = {CallerRole::kServer}, .at_unix_s = now_s});
    if (!credentials.ok() && ::access(folder.c_str(), F_OK) != 0) {
      return absl::InvalidArgumentError(fmt::format(
          "--tls {0}: there is no such folder; these two commands make it: `honed init-ca --ca "
          "{1}` "
          "and `honed issue server NAME --ca {1} --out {0}` (to try Hone out: honed --dev)",
          folder, options.Text("ca")));
    }
    HONE_RETURN_IF_ERROR(credentials.status());
    honed.credentials = *std::move(credentials);
  }
  return honed;
}

/// Until SIGINT or SIGTERM, which this thread and those that it has started since have blocked.
void AwaitEnd(const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
}

/// Where systemd started this program (Type=notify).
void TellServiceManager(const std::string& state) {
  const char* const socket = std::getenv("NOTIFY_SOCKET");
  const absl::Status told = hone::NotifyService(socket == nullptr ? "" : socket, state);
  if (!told.ok()) hone::LogWarning("{}", hone::StatusMessage(told));
}

/// Beside the farm's port: "127.0.0.1:7422" of "ADDRESS:7421"; 0, any free one, stays 0.
std::string PageBeside(const std::string& listen) {
  int port = 0;
  const bool given = absl::SimpleAtoi(listen.substr(listen.rfind(':') + 1), &port) && port > 0;
  return fmt::format("127.0.0.1:{}", given ? port % 65535 + 1 : 0);
}

absl::Status ServeDev(hone::server::HonedOptions honed, const hone::ProgramOptions& options,
                      const sigset_t& signals) {
  honed.listen = options.Text("listen") == kDefaultListen ? "127.0.0.1:7421" : honed.listen;
  if (honed.page_listen.empty()) honed.page_listen = PageBeside(honed.listen);
  const hone::SystemMonotonicClock clock;
  const hone::SystemWallClock wall_clock;
  HONE_ASSIGN_OR_RETURN(const auto farm, hone::server::DevFarm::Start(honed, clock, wall_clock));
  fmt::print("{}", farm->Greeting());
  std::fflush(stdout);
  AwaitEnd(signals);
  return absl::OkStatus();
}

absl::Status Serve(const hone::ProgramOptions& options, int64_t now_s) {
  HONE_ASSIGN_OR_RETURN(const hone::server::HonedOptions honed_options,
                        HonedOptionsOf(options, now_s));
  if (options.Flag("check-config")) return hone::server::CheckOptions(honed_options);
  HONE_RETURN_IF_ERROR(hone::SetKillPoints(options.List("test-kill"), kKillLabels));
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (options.Flag("dev")) return ServeDev(honed_options, options, signals);
  const hone::SystemMonotonicClock clock;
  const hone::SystemWallClock wall_clock;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<hone::server::Honed> honed,
                        hone::server::Honed::Start(honed_options, clock, wall_clock));
  fmt::print("honed {} listens on port {}, log {}\n", hone::kProgramVersion, honed->port(),
             honed_options.log_path);
  std::fflush(stdout);
  hone::LogEvent(hone::LogLevel::kInfo, "honed_started",
                 {{"version", hone::kProgramVersion},
                  {"listen", honed_options.listen},
                  {"port", honed->port()},
                  {"db", honed_options.log_path}});
  TellServiceManager("READY=1");
  AwaitEnd(signals);
  hone::LogEvent(hone::LogLevel::kInfo, "honed_ending", {});
  TellServiceManager("STOPPING=1");
  honed->Stop();
  return absl::OkStatus();
}

absl::Status Run(const hone::ProgramOptions& options) {
  const hone::SystemWallClock wall_clock;
  const int64_t now_s = wall_clock.UnixNs() / 1'000'000'000;
  const std::vector<std::string>& words = options.words();
  if (words.empty()) return Serve(options, now_s);
  if (words[0] == "init-ca") {
    if (words.size() != 1) return absl::InvalidArgumentError("usage: honed init-ca [--ca FOLDER]");
    HONE_RETURN_IF_ERROR(hone::server::InitCa(options.Text("ca"), now_s, Actor()));
    fmt::print("{}/: keep ca.key safe; honed issue makes credentials from it\n",
               options.Text("ca"));
    return absl::OkStatus();
  }
  if (words[0] == "issue") return IssueCertificate(options, now_s);
  if (words[0] == "revoke") return Revoke(options);
  constexpr std::array<hone::Suggestion, 3> kCommands = {
      {{"init-ca", "init|ca"}, {"issue", "certificate|cert|new"}, {"revoke", "refuse|ban"}}};
  const std::string_view near = hone::Nearest(words[0], kCommands);
  return absl::InvalidArgumentError(
      fmt::format("unknown command '{}'; {}", words[0],
                  near.empty() ? "see --help" : fmt::format("did you mean {}?", near)));
}

}  // namespace

int main(int argc, char** argv) {
  // Debian builds Abseil with deadlock detection on; it costs four times the lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  hone::server::KeepHeapFlat();
  hone::proto::KeepGrpcQuiet();
  return hone::RunDaemon({.name = "honed",
                          .summary = "the coordinator of a tuning farm",
                          .usage = kUsage,
                          .options = kOptions,
                          .default_config = kDefaultConfig,
                          .run = Run,
                          .log = {.key_value = true}},
                         argc, argv);
}
