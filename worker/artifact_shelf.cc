#include "worker/artifact_shelf.h"

namespace hone::worker {

std::shared_ptr<const std::string> ArtifactShelf::Find(const std::string& sha256) {
  const auto found = by_hash_.find(sha256);
  if (found == by_hash_.end()) return nullptr;
  items_.splice(items_.begin(), items_, found->second);
  return found->second->second;
}

void ArtifactShelf::Put(const std::string& sha256, std::shared_ptr<const std::string> bytes) {
  if (by_hash_.contains(sha256)) return;
  bytes_ += static_cast<int64_t>(bytes->size());
  items_.emplace_front(sha256, std::move(bytes));
  by_hash_[sha256] = items_.begin();
  while (bytes_ > most_bytes_ && items_.size() > 1) {
    bytes_ -= static_cast<int64_t>(items_.back().second->size());
    by_hash_.erase(items_.back().first);
    items_.pop_back();
  }
}

}  // namespace hone::worker
