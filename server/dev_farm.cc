#include "server/dev_farm.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "fmt/format.h"

#include "base/credential_check.h"
#include "base/helper_program.h"
#include "base/status.h"
#include "server/ca.h"

namespace hone::server {
namespace {

constexpr int64_t kDaySeconds = 86400;
constexpr int64_t kDrainNs = 5'000'000'000;

absl::StatusOr<std::string> NewFolder() {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / "honed-dev-XXXXXX").string();
  if (error || ::mkdtemp(path.data()) == nullptr) return ErrnoStatus(errno, "make '" + path + "'");
  return path;
}

/// The authority, and credentials of everybody: honed, its worker, and "you", who may do all that
/// a user and an admin may.
absl::Status MakeCredentials(const std::string& folder, int64_t now_unix_s) {
  const std::string ca = folder + "/ca";
  HONE_RETURN_IF_ERROR(InitCa(ca, now_unix_s, "honed --dev"));
  using Who = std::pair<CallerRole, std::string>;
  for (const auto& [role, name] : {Who{CallerRole::kServer, "honed"},
                                   {CallerRole::kMeasure, "dev"},
                                   {CallerRole::kSubmit, "you"},
                                   {CallerRole::kAdmin, "admin"}}) {
    HONE_RETURN_IF_ERROR(Issue({.ca_folder = ca,
                                .role = role,
                                .name = name,
                                .out_folder = folder + "/" + name,
                                .now_unix_s = now_unix_s,
                                .seconds = 30 * kDaySeconds,
                                .actor = "honed --dev"}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DevFarm>> DevFarm::Start(HonedOptions options,
                                                        const MonotonicClock& clock,
                                                        const WallClock& wall_clock) {
  HONE_ASSIGN_OR_RETURN(std::string folder, NewFolder());
  std::unique_ptr<DevFarm> farm(new DevFarm(std::move(folder)));
  HONE_RETURN_IF_ERROR(MakeCredentials(farm->folder_, wall_clock.UnixNs() / 1'000'000'000));
  options.log_path = farm->folder_ + "/tune.db";
  options.ca_folder = farm->folder_ + "/ca";
  options.transport = Transport::kMutualTls;
  HONE_ASSIGN_OR_RETURN(
      options.credentials,
      ReadConfiguredCredentials(farm->folder_ + "/honed", {.roles = {CallerRole::kServer}}));
  HONE_ASSIGN_OR_RETURN(farm->honed_, Honed::Start(options, clock, wall_clock));
  HONE_RETURN_IF_ERROR(farm->StartWorker());
  return farm;
}

absl::Status DevFarm::StartWorker() {
  HONE_ASSIGN_OR_RETURN(const std::string program, FindSiblingProgram("hone-worker"));
  SubprocessOptions spawn;
  spawn.argv = {program, "--connect", fmt::format("127.0.0.1:{}", honed_->port()), "--tls",
                folder_ + "/dev", "--lock-folder", folder_,
                // Also where nobody is left to end it.
                "--end-with", std::to_string(::getpid())};
  spawn.standard_input = ChildStream::kNull;
  spawn.standard_output = ChildStream::kInherit;
  spawn.standard_error = ChildStream::kInherit;
  HONE_ASSIGN_OR_RETURN(Subprocess worker, Subprocess::Spawn(spawn));
  worker_ = std::make_unique<Subprocess>(std::move(worker));
  return absl::OkStatus();
}

DevFarm::~DevFarm() {
  if (worker_) {
    worker_->Kill(SIGTERM);
    static_cast<void>(worker_->Wait(SystemMonotonicClock(), kDrainNs));
    worker_.reset();  // with force, if it has not ended
  }
  if (honed_) honed_->Stop();
  honed_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string DevFarm::Greeting() const {
  std::string text = "a farm for trying out; Ctrl-C ends it and deletes its log\n";
  if (honed_->page_port() != 0) {
    text += fmt::format("  page:    http://127.0.0.1:{}/\n", honed_->page_port());
  }
  const std::string server = fmt::format("--server 127.0.0.1:{}", honed_->port());
  return text + fmt::format(
                    "  tune:    hone tune MODEL.onnx {0} --tls {1}/you\n"
                    "  devices: hone device list {0} --tls {1}/admin\n",
                    server, folder_);
}

}  // namespace hone::server
