#include "compiler/constant_pool.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "compiler/memory_plan.h"

namespace hone::compiler {

int64_t ConstantPool::Add(const graph::ConstantPtr& constant) {
  const auto [known, fresh] = offset_of_object_.try_emplace(constant.get(), size_);
  if (!fresh) return known->second;
  const std::span<const std::byte> bytes = constant->bytes;
  const Hash128 hash =
      HashBytes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::vector<size_t>& same_hash = entries_of_hash_[hash];
  for (const size_t e : same_hash) {
    if (std::ranges::equal(entries_[e].constant->bytes, bytes)) {
      known->second = entries_[e].offset;
      // Kept alive, so that its address is not given to another constant.
      entries_.push_back({entries_[e].offset, constant});
      return known->second;
    }
  }
  same_hash.push_back(entries_.size());
  entries_.push_back({size_, constant});
  const auto size = static_cast<int64_t>(bytes.size());
  size_ += (size + kArenaAlignmentBytes - 1) / kArenaAlignmentBytes * kArenaAlignmentBytes;
  return known->second;
}

std::vector<std::byte> ConstantPool::Pack() const {
  std::vector<std::byte> packed(static_cast<size_t>(size_));
  for (const Entry& entry : entries_) {
    const std::span<const std::byte> bytes = entry.constant->bytes;
    if (!bytes.empty()) std::memcpy(packed.data() + entry.offset, bytes.data(), bytes.size());
  }
  return packed;
}

}  // namespace hone::compiler
