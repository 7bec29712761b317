#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace hone::server {

/// What can be found out again, for the keys that were added last. Not thread-safe.
template <typename Key, typename Value>
class RecentMap {
 public:
  explicit RecentMap(size_t most) : most_(most) {}

  /// A value that is there stays, and its place.
  void Add(const Key& key, Value value) {
    if (!values_.try_emplace(key, std::move(value)).second) return;
    keys_.push_back(key);
    if (keys_.size() <= most_) return;
    values_.erase(keys_.front());
    keys_.pop_front();
  }
  std::optional<Value> Find(const Key& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  size_t size() const { return values_.size(); }

 private:
  const size_t most_;
  std::map<Key, Value> values_;
  std::deque<Key> keys_;  ///< oldest first
};

}  // namespace hone::server
