#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor_buffer.h"

namespace hone::ir {

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
  Element Read(DType dtype, int64_t start, int64_t index, int agent, std::string* why);
  void Write(DType dtype, int64_t start, int64_t index, Element element, int agent,
             std::string* why);

 private:
  static constexpr int kNobody = -1;
  static constexpr int kMany = -2;
  struct Touch {
    uint32_t epoch = 0;
    int writer = kNobody;
    int reader = kNobody;
  };

  Touch* TouchAt(int64_t byte);

  std::vector<uint8_t> own_;
  std::span<uint8_t> bytes_;
  std::vector<bool> set_;
  std::vector<Touch> touched_;
  uint32_t epoch_ = 1;
};

}  // namespace hone::ir
