#include "ir/async_copy.h"

#include <memory>

#include "base/core/check.h"

namespace hone::ir {
namespace {

constexpr int64_t kCommit = -1, kAwaitNone = -2;

Stmt SyncOf(int64_t extent) {
  StmtNode node{.kind = StmtKind::kSync};
  node.extent = extent;
  return std::make_shared<const StmtNode>(std::move(node));
}

}  // namespace

Stmt AsyncStore(const Stmt& store) {
  HONE_CHECK(store->kind == StmtKind::kStore && store->combiner == Combiner::kNone);
  StmtNode node = *store;
  node.extent = 1;
  return std::make_shared<const StmtNode>(std::move(node));
}

bool IsAsyncStore(const StmtNode& node) {
  return node.kind == StmtKind::kStore && node.extent == 1;
}

Stmt CommitCopies() { return SyncOf(kCommit); }

bool IsCommit(const StmtNode& node) {
  return node.kind == StmtKind::kSync && node.extent == kCommit;
}

Stmt AwaitCopies(int64_t groups) {
  HONE_CHECK(groups >= 0 && groups <= 1000);
  return SyncOf(kAwaitNone - groups);
}

int64_t AwaitedGroups(const StmtNode& node) {
  // Far below that are those of ir/wgmma.cc.
  constexpr int64_t kMostGroups = 1000;
  if (node.kind != StmtKind::kSync || node.extent > kAwaitNone ||
      node.extent < kAwaitNone - kMostGroups)
    return -1;
  return kAwaitNone - node.extent;
}

}  // namespace hone::ir
