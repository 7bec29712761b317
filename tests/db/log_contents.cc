#include "log_contents.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "gtest/gtest.h"

namespace hone::db {

std::unique_ptr<LogFile> MustOpen(const std::string& path, OpenMode mode) {
  absl::StatusOr<std::unique_ptr<LogFile>> log = OpenLog(path, {.mode = mode});
  EXPECT_TRUE(log.ok()) << log.status();
  return log.ok() ? *std::move(log) : nullptr;
}

LogContents ContentsOf(Database& database) {
  LogContents contents;
  const auto into = [](auto& list) {
    return [&list](const auto& fact) {
      list.push_back(fact);
      return absl::OkStatus();
    };
  };
  contents.status.Update(database.ScanWorkloads(into(contents.workloads)));
  contents.status.Update(database.ScanDevices(into(contents.devices)));
  contents.status.Update(database.ScanSessions([&](const StoredSession& stored) {
    contents.sessions.push_back(stored.session);
    return absl::OkStatus();
  }));
  contents.status.Update(database.ScanBlobs(into(contents.blobs)));
  contents.status.Update(database.ScanRecords({}, [&](const RankedRecord& ranked) {
    contents.records.push_back(ranked.record);
    return absl::OkStatus();
  }));
  contents.status.Update(database.ScanAttempts({}, into(contents.attempts)));
  contents.status.Update(database.ScanValues({}, into(contents.values)));
  contents.status.Update(database.ScanEvents({}, into(contents.events)));
  for (Event& event : contents.events) event.sequence = 0;
  return contents;
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hone::db
