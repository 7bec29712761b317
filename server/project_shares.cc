#include "server/project_shares.h"

#include <algorithm>
#include <charconv>

#include "fmt/format.h"

#include "base/status.h"
#include "proto/field_check.h"

namespace hone::server {
namespace {

constexpr int64_t kMostShare = 1'000'000;

}  // namespace

absl::StatusOr<std::map<std::string, int64_t>> ParseShares(const std::vector<std::string>& pairs) {
  std::map<std::string, int64_t> shares;
  for (const std::string& pair : pairs) {
    const size_t equals = pair.rfind('=');
    const std::string name = pair.substr(0, equals);
    HONE_RETURN_IF_ERROR(proto::Name(name, "projects").status());
    const std::string text = equals == std::string::npos ? "" : pair.substr(equals + 1);
    int64_t share = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), share);
    if (wrong != std::errc() || end != text.data() + text.size() || share < 1 ||
        share > kMostShare) {
      return absl::InvalidArgumentError(
          fmt::format("projects: the share of '{}' is a whole number from 1 to {}, not '{}'", name,
                      kMostShare, text));
    }
    if (!shares.emplace(name, share).second) {
      return absl::InvalidArgumentError(fmt::format("projects: '{}' is given twice", name));
    }
  }
  return shares;
}

absl::Status SetShares(db::FarmStore& store, const std::map<std::string, int64_t>& shares,
                       int64_t now_ms, std::vector<db::FarmProject>& projects) {
  std::vector<db::FarmProject> after = projects;
  for (const auto& [name, share] : shares) {
    if (std::ranges::find(after, name, &db::FarmProject::project) == after.end()) {
      after.push_back({.project = name});
    }
  }
  db::FarmUnit unit;
  for (db::FarmProject& project : after) {
    const auto wanted = shares.find(project.project);
    const int64_t share = wanted == shares.end() ? 1 : wanted->second;
    if (share == project.share) continue;
    unit.changes.push_back(db::PutFarmProject{project.project, share});
    unit.changes.push_back(db::FarmAudit{.at_ms = now_ms,
                                         .actor = "honed",
                                         .action = "share",
                                         .subject = project.project,
                                         .detail = fmt::format("{} -> {}", project.share, share)});
    project.share = share;
  }
  if (unit.changes.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::vector<absl::Status> committed, store.Commit({&unit}));
  HONE_RETURN_IF_ERROR(committed.front());
  projects = std::move(after);
  return absl::OkStatus();
}

}  // namespace hone::server
