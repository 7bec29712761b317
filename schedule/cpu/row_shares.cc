#include <algorithm>

#include "schedule/cpu/rules.h"

// Which part of a product's or window's rows threads share, beside what stands outside of them.
namespace hone::schedule {

namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t TilesOfRows(const TileForm& form, const TileChoice& choice) {
  return CeilDiv(form.rows_total, choice.rows);
}

/// The largest share over the mean where each tile of rows is one, for each of the tiles outside:
/// high ones first, then those of one row less.
double TileImbalance(const TileForm& form, const TileChoice& choice, int64_t outside,
                     const ir::Target& target) {
  const int64_t tiles = TilesOfRows(form, choice), height = CeilDiv(form.rows_total, tiles);
  const int64_t high = (form.rows_total - tiles * (height - 1)) * outside;
  const int64_t threads = target.threads, all = tiles * outside;
  const auto rows_before = [&](int64_t n) { return n * (height - 1) + std::min(n, high); };
  int64_t largest = 0;
  for (int64_t t = 0; t < threads; ++t) {
    const int64_t begin = t * all / threads, end = (t + 1) * all / threads;
    largest = std::max(largest, rows_before(end) - rows_before(begin));
  }
  return static_cast<double>(largest * threads) / static_cast<double>(form.rows_total * outside);
}

/// Equal blocks of rows that leave threads the least unequal.
int64_t EqualBlocks(const TileForm& form, const TileChoice& choice, int64_t outside,
                    const ir::Target& target) {
  // The first and the last row stand apart where they have a border.
  int64_t best = 1;
  for (int64_t blocks = 2; !form.border && form.rows_total / blocks >= choice.rows; ++blocks) {
    if (ThreadImbalance(outside * best, target) <= kMostImbalance) break;
    if (form.rows_total % (blocks * form.row_block) != 0) continue;
    if (ThreadImbalance(outside * blocks, target) < ThreadImbalance(outside * best, target))
      best = blocks;
  }
  return best;
}

}  // namespace

int64_t TilesOutside(const ir::Stage& stage, const TileForm& f, const TileChoice& c) {
  int64_t outer = CeilDiv(f.vectors_total, c.vectors);
  for (int a : f.outer) outer *= stage.spatial[a];
  return outer;
}

int64_t RowBlocks(const ir::Stage& stage, const TileForm& f, const TileChoice& c,
                  const ir::Target& target) {
  if (f.row_axis >= 0 && c.row_blocks != 0) return c.row_blocks;
  if (f.row_axis < 0 || target.threads == 1 || f.rows_total <= c.rows) return 1;
  const int64_t outer = TilesOutside(stage, f, c);
  if (!HasManyThreads(target))
    return outer < target.threads && f.rows_total % target.threads == 0 ? target.threads : 1;
  const int64_t blocks = EqualBlocks(f, c, outer, target);
  const double imbalance = ThreadImbalance(outer * blocks, target);
  const bool whole = imbalance <= kMostImbalance || c.reduce_block > 0;
  return !whole && TileImbalance(f, c, outer, target) < imbalance ? TileChoice::kTiles : blocks;
}

double ShareImbalance(const ir::Stage& stage, const TileForm& f, const TileChoice& c,
                      const ir::Target& target) {
  const int64_t outer = TilesOutside(stage, f, c), blocks = RowBlocks(stage, f, c, target);
  return blocks == TileChoice::kTiles ? TileImbalance(f, c, outer, target)
                                      : ThreadImbalance(outer * blocks, target);
}

}  // namespace hone::schedule
