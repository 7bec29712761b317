#include "ir/lanes.h"

#include <bit>
#include <memory>
#include <utility>

#include "base/core/check.h"

namespace hone::ir {

Stmt CombineLanes(int buffer, Expr index, int64_t lanes, Combiner combiner) {
  HONE_CHECK(lanes >= 2 && lanes <= 32 && std::has_single_bit(static_cast<uint64_t>(lanes)));
  HONE_CHECK(index != nullptr && combiner != Combiner::kNone && !IsTuple(combiner));
  StmtNode node{.kind = StmtKind::kSync};
  node.buffers = {buffer};
  node.index = std::move(index);
  node.extent = lanes;
  node.combiner = combiner;
  return std::make_shared<const StmtNode>(std::move(node));
}

int64_t LanesOf(const StmtNode& node) {
  return node.kind == StmtKind::kSync && node.extent > 0 ? node.extent : 0;
}

}  // namespace hone::ir
