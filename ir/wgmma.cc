#include "ir/wgmma.h"

#include <memory>
#include <utility>

#include "base/core/check.h"
#include "ir/index/simplify.h"
#include "ir/mma.h"
#include "ir/narrow_product.h"

namespace hone::ir {
namespace {

/// Extents of kSyncs; copies have small negative ones (ir/async_copy.cc).
constexpr int64_t kShow = -1'000'000, kAwaitNone = -2'000'000;

Stmt SyncOf(int64_t extent, std::vector<int> buffers) {
  StmtNode node{.kind = StmtKind::kSync};
  node.extent = extent;
  node.buffers = std::move(buffers);
  return std::make_shared<const StmtNode>(std::move(node));
}

}  // namespace

std::optional<WgmmaLoop> FindWgmma(const StmtNode& loop) {
  const StmtNode* const eights = OnlyLoop(loop);
  const StmtNode* const columns = eights == nullptr ? nullptr : OnlyLoop(*eights);
  const StmtNode* const terms = columns == nullptr ? nullptr : OnlyLoop(*columns);
  const StmtNode* const store = terms == nullptr ? nullptr : OnlyStatement(*terms);
  if (store == nullptr || store->kind != StmtKind::kStore || store->combiner != Combiner::kSum ||
      loop.extent != kMmaRowHalves || columns->extent != kMmaColumnPair ||
      eights->extent > kMostGroupColumns / kMmaColumns || terms->loop == LoopKind::kVector ||
      terms->extent % kGroupTerms != 0)
    return std::nullopt;
  const Expr& value = store->values[0];
  if (value->kind != ExprKind::kBinary || value->binary() != BinaryOp::kMul ||
      value->dtype != DType::kF32)
    return std::nullopt;
  WgmmaLoop found{store, loop.var, eights->var, columns->var, terms->var};
  found.columns = kMmaColumns * eights->extent;
  found.terms = terms->extent;
  found.first = NarrowLoad(value->args[0]);
  found.second = NarrowLoad(value->args[1]);
  if (found.first == nullptr || found.second == nullptr ||
      found.first->dtype != found.second->dtype)
    return std::nullopt;
  if (DependsOnVar(found.second, found.row)) std::swap(found.first, found.second);
  const auto has = [](const Expr& load, int var) { return DependsOnVar(load, var); };
  const bool apart = has(found.first, found.row) && !has(found.second, found.row) &&
                     has(found.second, found.eight) && has(found.second, found.column) &&
                     !has(found.first, found.eight) && !has(found.first, found.column);
  return apart ? std::optional(found) : std::nullopt;
}

Stmt AwaitProducts(int sums, int64_t loops) {
  HONE_CHECK(sums >= 0 && loops >= 0);
  return SyncOf(kAwaitNone - loops, {sums});
}

int64_t AwaitedProducts(const StmtNode& node) {
  // Further below are those of ir/box_copy.cc.
  constexpr int64_t kMostLoops = 1000;
  if (node.kind != StmtKind::kSync || node.extent > kAwaitNone ||
      node.extent < kAwaitNone - kMostLoops)
    return -1;
  return kAwaitNone - node.extent;
}

bool IsOrderOfMachines(const StmtNode& node) {
  return node.kind == StmtKind::kSync && node.extent <= kShow;
}

Stmt ShowToProducts() { return SyncOf(kShow, {}); }

bool IsShowToProducts(const StmtNode& node) {
  return node.kind == StmtKind::kSync && node.extent == kShow;
}

}  // namespace hone::ir
