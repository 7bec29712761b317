#include "ir/tile_product.h"

#include "ir/index/simplify.h"
#include "ir/narrow_product.h"

namespace hone::ir {

std::optional<TileProduct> FindTileProduct(const StmtNode& loop) {
  const StmtNode* const columns = OnlyLoop(loop);
  const StmtNode* const groups = columns == nullptr ? nullptr : OnlyLoop(*columns);
  if (groups == nullptr) return std::nullopt;
  const StmtNode* const inner = OnlyLoop(*groups);
  const StmtNode* const terms = inner == nullptr ? groups : inner;
  const StmtNode* const store = OnlyStatement(*terms);
  if (store->kind != StmtKind::kStore || store->combiner != Combiner::kSum) return std::nullopt;
  const Expr& value = store->values[0];
  if (value->kind != ExprKind::kBinary || value->binary() != BinaryOp::kMul) return std::nullopt;
  TileProduct p{store, loop.var, columns->var, inner == nullptr ? -1 : groups->var, terms->var};
  p.rows = loop.extent;
  p.columns = columns->extent;
  p.groups = inner == nullptr ? 1 : groups->extent;
  p.terms = terms->extent;
  p.first = NarrowLoad(value->args[0]);
  p.second = NarrowLoad(value->args[1]);
  if (p.first == nullptr || p.second == nullptr) return std::nullopt;
  const DType dtype = p.first->dtype;
  if (!AreTileFactors(dtype, p.second->dtype)) return std::nullopt;
  if (p.terms * SizeOf(dtype) != kTileWordBytes) return std::nullopt;
  if (p.rows > kTileRows || p.columns > kTileRows || p.groups > kTileRows) return std::nullopt;
  if (DependsOnVar(p.second, p.row)) std::swap(p.first, p.second);
  return p;
}

bool AreTiles(const TileProduct& p, const TileStrides& first, const TileStrides& second,
              const TileStrides& sums) {
  const bool groups = p.groups == 1 || first.group == p.terms;
  return first.column == 0 && first.term == 1 && groups &&                   //
         second.row == 0 && second.term == 1 && second.column == p.terms &&  //
         sums.group == 0 && sums.term == 0 && sums.column == 1;
}

}  // namespace hone::ir
