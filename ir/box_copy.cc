#include "ir/box_copy.h"

#include <memory>
#include <utility>

#include "base/core/check.h"
#include "ir/async_copy.h"

namespace hone::ir {
namespace {

/// Extents of kSyncs, less a number; those of ir/wgmma.cc are not so far below.
constexpr int64_t kBegin = -3'000'000, kExpect = -4'000'000;

Stmt With(const Stmt& sync, int barriers, std::vector<Expr> values) {
  StmtNode node = *sync;
  node.buffers = {barriers};
  node.values = std::move(values);
  return std::make_shared<const StmtNode>(std::move(node));
}

Stmt SyncOf(int64_t extent, int barriers, std::vector<Expr> values) {
  StmtNode node{.kind = StmtKind::kSync};
  node.extent = extent;
  return With(std::make_shared<const StmtNode>(std::move(node)), barriers, std::move(values));
}

}  // namespace

Stmt CopyOfBox(const BoxCopy& box, int var, Stmt copy) {
  StmtNode node = *For(var, 1, LoopKind::kBox, std::move(copy));
  node.buffers = {box.buffer, box.barriers};
  node.index = box.to;
  node.values = {box.row, box.column, box.slot};
  node.map = box.map;
  return std::make_shared<const StmtNode>(std::move(node));
}

BoxCopy BoxOf(const StmtNode& loop) {
  HONE_CHECK(loop.loop == LoopKind::kBox && loop.buffers.size() == 2 && loop.values.size() == 3);
  return {loop.buffers[0], loop.buffers[1], loop.map,      loop.index,
          loop.values[0],  loop.values[1],  loop.values[2]};
}

Stmt BeginBarriers(int barriers, int64_t count) {
  HONE_CHECK(count > 0 && count < 1000);
  return SyncOf(kBegin - count, barriers, {});
}

Stmt ExpectBoxes(int barriers, Expr slot, int64_t bytes) {
  HONE_CHECK(bytes > 0 && bytes < 1 << 20);  // PTX ISA: the count of a phase
  return SyncOf(kExpect - bytes, barriers, {std::move(slot)});
}

Stmt AwaitBoxes(int64_t groups, int barriers, Expr slot, Expr parity) {
  return With(AwaitCopies(groups), barriers, {std::move(slot), std::move(parity)});
}

Stmt CommitBoxes(int barriers) { return With(CommitCopies(), barriers, {}); }

int64_t BegunBarriers(const StmtNode& node) {
  const bool is = node.kind == StmtKind::kSync && node.extent < kBegin && node.extent > kExpect;
  return is ? kBegin - node.extent : 0;
}

int64_t ExpectedBytes(const StmtNode& node) {
  return node.kind == StmtKind::kSync && node.extent < kExpect ? kExpect - node.extent : 0;
}

}  // namespace hone::ir
