#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/core/hash128.h"
#include "graph/graph.h"

namespace hone::compiler {

/// The constants of a package, one after the other at multiples of 64 bytes. Equal bytes are stored
/// once. The order is that of the Add calls. Not thread-safe.
class ConstantPool {
 public:
  /// Offset of these bytes.
  int64_t Add(const graph::ConstantPtr& constant);

  int64_t bytes() const { return size_; }
  /// The section's bytes; zeros between the constants.
  std::vector<std::byte> Pack() const;

 private:
  struct Entry {
    int64_t offset;
    graph::ConstantPtr constant;
  };
  std::vector<Entry> entries_;
  std::map<const void*, int64_t> offset_of_object_;
  std::map<Hash128, std::vector<size_t>> entries_of_hash_;
  int64_t size_ = 0;
};

}  // namespace hone::compiler
