#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/loop_machine.h"
#include "ir/mma.h"
#include "ir/value.h"

namespace hone::ir {

/// An element of a buffer: its index where the variables stand so.
struct LaneElement {
  int buffer = -1;
  Expr index;
  std::vector<int64_t> vars;
};
/// What one of the lanes reads or writes.
using ReadOfLane = std::function<Value(LoopMachine&, const LaneElement&)>;
using WriteOfLane = std::function<void(LoopMachine&, const LaneElement&, const Value&)>;

/// An mma as the lanes of a warp do it: each fetches the elements of both factors that the
/// instruction wants of it, which stand in other lanes' rows and columns, and adds to its own sums.
void RunMma(const MmaLoop& mma, std::span<LoopMachine> lanes, const ReadOfLane& read,
            const WriteOfLane& write);

}  // namespace hone::ir
