#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "ir/stmt.h"

namespace hone::ir {

/// What RunLoopNest checks besides the semantics.
struct LoopNestChecks {
  /// Arguments that are not read-only hold nothing at the start: reading them first is an error.
  bool outputs_start_unset = true;
  /// Two iterations of a parallel loop (or two blocks) that touch the same element of an argument,
  /// and two threads that touch the same element of shared memory between two syncs, one of them
  /// writing, are an error.
  bool find_races = true;
};

/// Runs a loop nest, one element at a time, and checks what hardware would not: every index against
/// its buffer, reads of scratch, register, shared and workspace elements that nobody wrote, writes
/// to read-only buffers, races, syncs that not all threads reach. `arguments[k]` are the bytes of
/// HoneCall.buffers[k]. Each parallel iteration, block and thread starts with unset registers and
/// scratch. The threads of a block run one after the other up to the next sync, then on. Floats are
/// computed in double and rounded at stores and casts. Errors name phase, statement and variables:
/// kOutOfRange for an index, kInternal for everything else.
absl::Status RunLoopNest(const LoopNest& nest, std::span<const std::span<uint8_t>> arguments,
                         const LoopNestChecks& checks = {});

}  // namespace hone::ir
