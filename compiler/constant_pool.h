#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/hash128.h"
#include "base/core/unique_fd.h"
#include "graph/graph.h"
#include "runtime/region.h"

namespace hone::compiler {

/// The constants of a package, one after the other at multiples of 64 bytes. Equal bytes are stored
/// once. The order is that of the Add calls. Bytes are written to a file at once, so that what is
/// added need not stay in memory. Movable. Not thread-safe.
class ConstantPool {
 public:
  /// Keeps the bytes in a file without a name in `folder`; in memory where that is empty or none
  /// can be made there.
  static absl::StatusOr<ConstantPool> Create(const std::string& folder);

  /// Offset of these bytes. kResourceExhausted: the disk is full.
  absl::StatusOr<int64_t> Add(const graph::ConstantPtr& constant);

  int64_t bytes() const { return size_; }
  /// The section's bytes; zeros between the constants. The last call.
  absl::StatusOr<runtime::Region> Take();

 private:
  explicit ConstantPool(UniqueFd file, std::string where)
      : file_(std::move(file)), where_(std::move(where)) {}
  absl::Status Write(std::span<const std::byte> bytes);
  /// The bytes at `offset` are these.
  absl::StatusOr<bool> Holds(int64_t offset, std::span<const std::byte> bytes) const;

  struct Entry {
    int64_t offset = 0;
    size_t bytes = 0;
  };
  UniqueFd file_;
  std::string where_;  ///< for messages
  /// By address, while the object lives: another one may have its place later.
  std::map<const void*, std::pair<std::weak_ptr<const graph::TensorData>, int64_t>>
      offset_of_object_;
  std::map<Hash128, std::vector<Entry>> entries_of_hash_;
  int64_t size_ = 0;
};

}  // namespace hone::compiler
