#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "proto/worker_messages.h"

namespace hone::server {

/// What builders made, until somebody runs it: by what was asked for, never by what a builder says
/// that it is. Bounded: what was not used for longest goes, and is built again. Not thread-safe.
class ArtifactCache {
 public:
  struct Entry {
    proto::Artifact artifact;                  ///< outcome kOk: there are bytes
    std::shared_ptr<const std::string> bytes;  ///< null where it could not be built
  };
  explicit ArtifactCache(int64_t most_bytes) : most_bytes_(most_bytes) {}

  /// The key of one artifact of a job: of job.traces[position], or behind them of the default
  /// schedule. Equal ones have equal Workload, target, Trace and builder version.
  static std::string KeyOf(const proto::Job& job, size_t position, const std::string& builder);

  /// Null: not built, or gone. Stays valid until the next Put; counts as used.
  const Entry* Find(const std::string& key);
  void Put(const std::string& key, Entry entry);

  int64_t bytes() const { return bytes_; }
  int64_t num_evicted() const { return num_evicted_; }

 private:
  struct Slot {
    Entry entry;
    std::list<std::string>::iterator used;  ///< in used_
  };
  static int64_t CostOf(const Entry& entry);

  const int64_t most_bytes_;
  std::unordered_map<std::string, Slot> slots_;
  std::list<std::string> used_;  ///< keys, the latest first
  int64_t bytes_ = 0, num_evicted_ = 0;
};

}  // namespace hone::server
