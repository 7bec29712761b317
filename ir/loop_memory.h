#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor_buffer.h"

namespace hone::ir {

/// Who touches memory: a thread of one of the iterations that run at once (a block, on a GPU).
/// Barriers order what threads of one block do, never what two blocks do.
struct LoopAgent {
  int block = 0, thread = 0;
  uint32_t interval = 0;  ///< between two barriers of the block; later ones have higher numbers

  /// Whether nothing says which of the two comes first.
  bool Races(const LoopAgent& other) const {
    if (block != other.block) return true;
    return thread != other.thread && interval == other.interval;
  }
};

/// A piece of memory that knows which bytes were written, and by whom in the current epoch. Not
/// thread-safe.
class LoopMemory {
 public:
  /// Own memory, unset.
  explicit LoopMemory(int64_t bytes);
  /// Memory of the caller, which must outlive this.
  LoopMemory(std::span<uint8_t> bytes, bool is_set);
  LoopMemory(LoopMemory&&) = default;
  LoopMemory& operator=(LoopMemory&&) = default;

  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  /// Forgets what was written.
  void Unset();
  void EnableRaceChecks() { touched_.resize(bytes_.size()); }
  /// What was touched before no longer conflicts (a barrier).
  void NextEpoch() { ++epoch_; }

  /// Element `index` of an array of the dtype that starts at byte `start`. The caller has checked
  /// the bounds. What is wrong with the access, if anything, is returned in *why.
  Element Read(DType dtype, int64_t start, int64_t index, const LoopAgent& agent, std::string* why);
  void Write(DType dtype, int64_t start, int64_t index, Element element, const LoopAgent& agent,
             std::string* why);

 private:
  struct Touch {
    uint32_t epoch = 0;
    bool written = false, read = false;
    LoopAgent writer, reader;   ///< the last ones
    bool many_blocks = false;   ///< more than the reader's have read it
    bool many_threads = false;  ///< the same of threads of the reader's block, in its interval
  };

  Touch* TouchAt(int64_t byte);

  std::vector<uint8_t> own_;
  std::span<uint8_t> bytes_;
  std::vector<bool> set_;
  std::vector<Touch> touched_;
  uint32_t epoch_ = 1;
};

}  // namespace hone::ir
