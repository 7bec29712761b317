#pragma once

#include <memory>
#include <string>
#include <vector>

#include "db/log_file.h"

namespace hone::db {

/// Opens a log and expects success; null otherwise.
std::unique_ptr<LogFile> MustOpen(const std::string& path, OpenMode mode);

/// Every fact of a log as its scans give them, first error included.
struct LogContents {
  absl::Status status;
  std::vector<WorkloadRow> workloads;
  std::vector<Device> devices;
  std::vector<Session> sessions;
  std::vector<Blob> blobs;
  std::vector<TuningRecord> records;
  std::vector<Attempt> attempts;
  std::vector<TraceValues> values;
  std::vector<Event> events;  ///< sequence set to 0: each log has its own

  bool operator==(const LogContents&) const = default;
};

LogContents ContentsOf(Database& database);

/// A file's bytes, read as any file: for files that no SQLite connection has open.
std::string BytesOf(const std::string& path);
void WriteBytes(const std::string& path, const std::string& bytes);

/// Names of the files in a folder, sorted.
std::vector<std::string> FilesIn(const std::string& folder);

}  // namespace hone::db
