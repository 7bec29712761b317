#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/core/result.h"
#include "runtime/region.h"

// Constants in the memory of each node of a machine with several, so that threads read their own.
namespace hone::runtime {

/// A copy for each node, numbered from 0. Immutable.
class NodeCopies {
 public:
  /// `node_of_cpu` as NodeOfEachCpu gives it. Where the system does not let memory be placed, it
  /// lies where it may. kResourceExhausted.
  static Result<std::shared_ptr<const NodeCopies>> Make(std::span<const std::byte> constants,
                                                        const std::vector<int>& node_of_cpu);

  int count() const { return static_cast<int>(copies_.size()); }
  std::byte* data(int copy) const { return copies_[static_cast<size_t>(copy)].data(); }
  /// The copy that is near the calling thread just now; the first where nothing says so.
  int OfThisThread() const;

 private:
  std::vector<Region> copies_;
  std::vector<int> copy_of_cpu_;
};

/// Makes the copies of one model when they are first asked for; those who ask share them and keep
/// them. Thread-safe.
class NodeCopyShelf {
 public:
  /// Errors of NodeCopies::Make. All who ask give the same.
  Result<std::shared_ptr<const NodeCopies>> Get(std::span<const std::byte> constants,
                                                const std::vector<int>& node_of_cpu);

 private:
  std::mutex mutex_;
  std::weak_ptr<const NodeCopies> made_;
};

/// Arguments of a step for each of the copies: those of copy k lie k * stride pointers further on.
struct NodeStride {
  const NodeCopies* copies = nullptr;  ///< null: there is one set for all threads
  size_t pointers = 0;

  size_t OfThisThread() const {
    return copies == nullptr ? 0 : static_cast<size_t>(copies->OfThisThread()) * pointers;
  }
};

}  // namespace hone::runtime
