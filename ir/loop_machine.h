#pragma once

#include <cstdint>
#include <vector>

#include "ir/loop_memory.h"
#include "ir/stmt.h"
#include "ir/value.h"

namespace hone::ir {

/// One thread of execution: where it stands in nested statements, its variables and its own memory.
struct LoopMachine {
  struct Frame {
    const StmtNode* node;
    size_t next = 0;
    int64_t iteration = 0;
  };

  std::vector<Frame> frames;
  std::vector<int64_t> vars;
  std::vector<LoopMemory> registers;  ///< by buffer; empty ones for other scopes
  LoopMemory scratch{0};
  int concurrent = 0;     ///< number of the parallel iteration or block
  int before = 0;         ///< iterations of the phase's parallel loops that ended
  int thread = 0;         ///< number in the block
  bool in_block = false;  ///< runs as a GPU thread, may sync
  const StmtNode* waits_at = nullptr;
  /// What an asynchronous store of a float leaves until it has landed; no value of a test.
  static constexpr double kOnItsWay = 1e30;
  /// Asynchronous stores of which this thread has not waited for.
  struct Copy {
    int buffer = -1;
    int64_t index = 0;
    DType dtype = DType::kF32;
    Value value;
    int64_t group = 0;
  };
  std::vector<Copy> copies;
  int64_t groups = 0;  ///< committed

  /// Loops around each other number their iterations together, parallel ones beside each other on.
  void EnterConcurrent(const StmtNode& loop) {
    concurrent *= static_cast<int>(loop.extent);
    if (loop.loop == LoopKind::kParallel) concurrent += before;
  }
  void LeaveConcurrent(const StmtNode& loop) {
    if (loop.loop == LoopKind::kParallel) concurrent -= before;
    concurrent /= static_cast<int>(loop.extent);
    if (loop.loop == LoopKind::kParallel) before += static_cast<int>(loop.extent);
  }
  void Push(const StmtNode& node) { frames.push_back({&node}); }
  void Unset() {
    for (LoopMemory& memory : registers) memory.Unset();
    scratch.Unset();
  }
};

}  // namespace hone::ir
