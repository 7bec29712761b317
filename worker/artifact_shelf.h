#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "proto/worker_messages.h"

namespace hone::worker {

/// An artifact that is here; `bytes` is null where it could not be built.
struct HeldArtifact {
  proto::Artifact artifact;
  std::shared_ptr<const std::string> bytes;
};

/// Artifacts by their SHA-256, so that each is fetched once: the default schedule's is part of
/// every lease of its task. Bounded: what was not used for longest goes. Not thread-safe.
class ArtifactShelf {
 public:
  explicit ArtifactShelf(int64_t most_bytes) : most_bytes_(most_bytes) {}

  /// Null: it is not here.
  std::shared_ptr<const std::string> Find(const std::string& sha256);
  void Put(const std::string& sha256, std::shared_ptr<const std::string> bytes);
  int64_t bytes() const { return bytes_; }

 private:
  using Item = std::pair<std::string, std::shared_ptr<const std::string>>;

  const int64_t most_bytes_;
  std::list<Item> items_;  ///< the latest used first
  std::unordered_map<std::string, std::list<Item>::iterator> by_hash_;
  int64_t bytes_ = 0;
};

}  // namespace hone::worker
