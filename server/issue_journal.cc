#include "server/issue_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/core/unique_fd.h"
#include "base/status.h"

namespace hone::server {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;  ///< read at once
constexpr size_t kMostLine = 2000;                 ///< kept of one

std::string Printable(std::string text, bool spaces) {
  for (char& c : text) {
    const bool plain = c > ' ' && c < '\x7f';
    if (!plain && !(spaces && c == ' ')) c = '?';
  }
  if (text.size() > kMostLine) text.resize(kMostLine);
  return text;
}

std::string LineOf(const db::FarmAudit& entry) {
  return fmt::format("{} {} {} {} {}\n", entry.at_ms, Printable(entry.actor, false),
                     Printable(entry.action, false), Printable(entry.subject, false),
                     Printable(entry.detail, true));
}

std::optional<db::FarmAudit> ParseLine(const std::string& line) {
  db::FarmAudit entry;
  std::string words[4];
  size_t at = 0;
  for (std::string& word : words) {
    const size_t space = line.find(' ', at);
    if (space == std::string::npos || space == at) return std::nullopt;
    word = line.substr(at, space - at);
    at = space + 1;
  }
  const char* const end = words[0].data() + words[0].size();
  const auto parsed = std::from_chars(words[0].data(), end, entry.at_ms);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  entry.actor = words[1];
  entry.action = words[2];
  entry.subject = words[3];
  entry.detail = line.substr(at);
  if (entry.action != "init-ca" && entry.action != "issue") return std::nullopt;
  // What the writer would not have written is somebody else's.
  if (LineOf(entry) != line + "\n") return std::nullopt;
  return entry;
}

auto KeyOf(const db::FarmAudit& e) {
  return std::tuple(e.at_ms, e.actor, e.action, e.subject, e.detail);
}

}  // namespace

absl::Status AppendIssue(const std::string& ca_folder, const db::FarmAudit& entry) {
  const std::string path = ca_folder + "/" + kIssueJournal;
  const auto failed = [&] { return ErrnoStatus(errno, fmt::format("append to '{}'", path)); };
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid() || ::flock(fd.get(), LOCK_EX) != 0) return failed();
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return failed();
  std::string text = LineOf(entry);
  char last = '\n';
  // A line that a full disk cut short must not swallow this one.
  if (info.st_size > 0 && ::pread(fd.get(), &last, 1, info.st_size - 1) != 1) return failed();
  if (last != '\n') text.insert(text.begin(), '\n');
  errno = ENOSPC;
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(fd.get()) != 0) {
    return failed();
  }
  return absl::OkStatus();
}

absl::StatusOr<Identity> IssuedUnder(const std::string& ca_folder, const std::string& name) {
  IssueIntake intake(ca_folder, {});
  std::map<std::string, Identity> found;
  for (const db::FarmAudit& entry : intake.Take()) {
    const auto identity = ParseIdentity(entry.subject);
    if (entry.action != "issue" || !identity.ok() || identity->name != name ||
        identity->role == CallerRole::kServer) {
      continue;
    }
    found.emplace(RoleName(identity->role), *identity);
  }
  if (found.size() == 1) return found.begin()->second;
  std::vector<std::string> roles;
  for (const auto& [role, identity] : found) roles.push_back(role);
  std::string why = intake.TakeTrouble();
  if (!roles.empty()) {
    why = fmt::format("'{}' was issued as {}", name, fmt::join(roles, " and as "));
  } else if (why.empty()) {
    why = fmt::format("'{}/{}' (--ca) has nobody of the name '{}' to revoke", ca_folder,
                      kIssueJournal, name);
  }
  return absl::InvalidArgumentError(
      why +
      "; say the role as well: honed revoke ROLE NAME, with ROLE of submit, measure, "
      "publish, admin");
}

IssueIntake::IssueIntake(const std::string& ca_folder, const std::vector<db::FarmAudit>& known)
    : path_(ca_folder + "/" + kIssueJournal) {
  for (const db::FarmAudit& entry : known) {
    if (entry.action == "issue" || entry.action == "init-ca" || entry.action == "unreadable") {
      known_.insert(KeyOf(entry));
    }
  }
}

std::vector<db::FarmAudit> IssueIntake::Take() {
  std::vector<db::FarmAudit> fresh;
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0) {
    const int error = errno;
    if (error != ENOENT && error != ENOTDIR) {
      trouble_ = StatusMessage(ErrnoStatus(error, fmt::format("read '{}'", path_)));
    }
    return fresh;
  }
  const std::tuple<uint64_t, int64_t, int64_t, int64_t> now(
      info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  if (now == seen_) return fresh;
  // Another file, or one that was not appended to: from its start.
  if (std::get<0>(now) != std::get<0>(seen_) || info.st_size <= std::get<1>(seen_)) taken_ = 0;
  const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    trouble_ = StatusMessage(ErrnoStatus(errno, fmt::format("read '{}'", path_)));
    return fresh;
  }
  std::string text(static_cast<size_t>(std::min<int64_t>(info.st_size - taken_, kMostBytes)), '\0');
  const ssize_t read = ::pread(fd.get(), text.data(), text.size(), taken_);
  text.resize(static_cast<size_t>(std::max<ssize_t>(read, 0)));
  size_t begin = 0;
  for (size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    if (line.empty()) continue;
    std::optional<db::FarmAudit> entry = ParseLine(line);
    if (!entry) {
      entry = db::FarmAudit{.actor = "honed",
                            .action = "unreadable",
                            .subject = kIssueJournal,
                            .detail = Printable(line, true)};
    }
    if (known_.insert(KeyOf(*entry)).second) fresh.push_back(*std::move(entry));
  }
  taken_ += static_cast<int64_t>(begin);
  seen_ = now;
  return fresh;
}

std::string IssueIntake::TakeTrouble() {
  if (trouble_ == told_) return "";
  told_ = trouble_;
  return trouble_;
}

}  // namespace hone::server
