#include <fmt/format.h>

#include <optional>
#include <utility>

#include "ir/tile_product.h"
#include "schedule/nest_builder.h"

// Whether tile registers can hold what the loops of a product of matrices read and write.
namespace hone::schedule {

using ir::Expr;

namespace {

/// How far elements lie apart for the next iteration of each loop; nothing where the index moves
/// with one otherwise.
std::optional<ir::TileStrides> StridesOf(const Expr& index, const ir::TileProduct& p,
                                         const ir::VarRanges& ranges) {
  ir::TileStrides strides;
  const std::pair<int, int64_t*> loops[] = {{p.row, &strides.row},
                                            {p.column, &strides.column},
                                            {p.group, &strides.group},
                                            {p.term, &strides.term}};
  for (const ir::Linear::Term& term : ir::ToLinear(index, ranges).terms) {
    for (const auto& [var, stride] : loops) {
      if (var < 0 || !ir::DependsOnVar(term.atom, var)) continue;
      if (!ir::Equal(term.atom, ir::Var(var))) return std::nullopt;
      *stride = term.coefficient;
    }
  }
  return strides;
}

}  // namespace

absl::Status NestBuilder::CheckTile(const Emitted& e, const std::string& loop) const {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("tensorize({}, tile): {}", loop, why));
  };
  if (!e.domain.empty() || !e.value.empty())
    return refuse("not all of its rows, columns and terms are there");
  const std::optional<ir::TileProduct> p = ir::FindTileProduct(*e.stmt);
  if (!p) {
    return refuse(
        "at most 16 rows, around at most 16 columns and at most 16 groups of 4 terms, all of them "
        "there, must add up i32 of loads of bytes; of 2 terms: f32 of bf16");
  }
  const auto first = StridesOf(p->first->args[0], *p, ranges_);
  const auto second = StridesOf(p->second->args[0], *p, ranges_);
  const auto sums = StridesOf(p->store->index, *p, ranges_);
  if (!first || !second || !sums || !ir::AreTiles(*p, *first, *second, *sums)) {
    return refuse(
        "terms must lie side by side in the factor of rows, words of them along columns in the "
        "other, and the sums along columns");
  }
  const auto scope = nest_.buffers[static_cast<size_t>(p->store->buffers[0])].scope;
  if (scope == ir::Scope::kRegister) return refuse("the sums must be in memory, not in registers");
  return absl::OkStatus();
}

}  // namespace hone::schedule
