#include "server/artifact_cache.h"

#include <utility>

#include "fmt/format.h"

#include "base/sha256.h"

namespace hone::server {
namespace {

constexpr int64_t kEntryBytes = 512;  ///< of an entry beside the artifact

}  // namespace

std::string ArtifactCache::KeyOf(const proto::Job& job, size_t position,
                                 const std::string& builder) {
  static const std::string kDefault;
  const std::string& trace = position < job.traces.size() ? job.traces[position] : kDefault;
  Sha256 hash;
  // With lengths, so that no text can pass for another two.
  hash.Update(fmt::format("artifact {} {} {} {}\n", builder.size(), job.target.size(), trace.size(),
                          job.workload.size()));
  for (const std::string* text : {&builder, &job.target, &trace, &job.workload}) {
    hash.Update(*text);
  }
  return hash.FinishHex();
}

int64_t ArtifactCache::CostOf(const Entry& entry) {
  const size_t bytes = entry.bytes == nullptr ? 0 : entry.bytes->size();
  return static_cast<int64_t>(bytes + entry.artifact.message.size()) + kEntryBytes;
}

const ArtifactCache::Entry* ArtifactCache::Find(const std::string& key) {
  const auto found = slots_.find(key);
  if (found == slots_.end()) return nullptr;
  used_.splice(used_.begin(), used_, found->second.used);
  return &found->second.entry;
}

void ArtifactCache::Put(const std::string& key, Entry entry) {
  const auto known = slots_.find(key);
  if (known != slots_.end()) {
    bytes_ -= CostOf(known->second.entry);
    used_.erase(known->second.used);
    slots_.erase(known);
  }
  bytes_ += CostOf(entry);
  used_.push_front(key);
  slots_[key] = {std::move(entry), used_.begin()};
  // The one that came last stays whatever its size: somebody waits for it.
  while (bytes_ > most_bytes_ && used_.size() > 1) {
    const auto oldest = slots_.find(used_.back());
    bytes_ -= CostOf(oldest->second.entry);
    slots_.erase(oldest);
    used_.pop_back();
    ++num_evicted_;
  }
}

}  // namespace hone::server
