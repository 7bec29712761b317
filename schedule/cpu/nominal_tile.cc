#include <algorithm>
#include <cstdlib>

#include "ir/cpu/cpu_target.h"
#include "schedule/access.h"
#include "schedule/cpu/rules.h"
#include "schedule/cpu/tile_table.h"

namespace hone::schedule {

namespace {

/// Multiply-adds of a window's unrolled tile above which the code outgrows what it gains.
constexpr int64_t kMostWindowSteps = 160;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What shares of different sizes cost many threads. Above what is even enough a little more:
/// those that are done early wait for the others, and give way or sleep.
double Unevenness(const ir::Stage& stage, const TileForm& form, const TileChoice& tile,
                  const ir::Target& target) {
  constexpr double kWaiting = 1.15;
  if (!HasManyThreads(target)) return 1;
  // The iterations of a scan follow each other; threads share the columns.
  const double imbalance =
      stage.scan >= 0 ? ThreadImbalance(CeilDiv(form.vectors_total, tile.vectors), target)
                      : ShareImbalance(stage, form, tile, target);
  return imbalance > kMostImbalance ? imbalance * kWaiting : imbalance;
}

/// Multiply-adds that issue while one load does, broadcasts that are instructions included; a
/// window's factors are both vectors.
double LoadCost(const ir::Workload& workload, const ir::Stage& stage, const ir::Target& target) {
  return RoleOf(workload, stage) != Role::kContraction || TakesBroadcastsFromMemory(target) ? 1
                                                                                            : 1.5;
}

/// Rows whose factor stays in the first cache from one reduce step to the next. Multiply-adds of
/// AVX-512 last as long as it takes to fetch those of 14 rows from the second one.
int64_t MostRows(const TraceWriter& writer, const TileForm& form, const ir::Target& target) {
  constexpr int64_t kMostRows = 14;
  if (form.row_axis < 0 || TakesBroadcastsFromMemory(target)) return kMostRows;
  return std::min(kMostRows, RowsWithinASet(writer.workload(), form, target));
}

/// Registers that hold, for each row of a tile, elements that a later tap reads again: where taps
/// are the innermost loop and unrolled, code keeps what neighbouring rows share. AVX-512 has
/// registers to spare and takes elements from memory.
int64_t SharedByTaps(const TraceWriter& writer, const TileForm& form, const ir::Target& target) {
  if (form.row_axis < 0 || form.reduce.empty() ||
      std::ranges::find(form.unrolled, form.reduce.back()) == form.unrolled.end() ||
      TakesBroadcastsFromMemory(target))
    return 0;
  const int tap = form.reduce.back();
  const ir::Stage& stage = writer.stage(form.anchor);
  int64_t most = 0;
  for (const Access& a : AccessesOf(writer.workload(), stage)) {
    if (!a.linear[form.row_axis] || !a.linear[tap] || a.stride[tap] == 0) continue;
    const int64_t apart = std::abs(a.stride[form.row_axis] / a.stride[tap]);
    if (apart < stage.Extent(tap)) most = std::max(most, apart);
  }
  return most;
}

}  // namespace

double TileEfficiency(const ir::Workload& workload, const TileForm& form, const TileChoice& tile,
                      const ir::Target& target) {
  const ir::Stage& stage = workload.stages[form.anchor];
  // Share of useful lanes × of full row tiles × of multiplications that hide their latency and
  // their loads.
  const int64_t columns = CeilDiv(form.vectors_total, tile.vectors) * tile.vectors;
  const double lanes = static_cast<double>(form.vectors_total) / static_cast<double>(columns);
  const int64_t tiles = CeilDiv(form.rows_total, tile.rows);
  const double balance = static_cast<double>(form.rows_total) /
                         static_cast<double>(tiles * CeilDiv(form.rows_total, tiles));
  const auto rows = static_cast<double>(tile.rows), vectors = static_cast<double>(tile.vectors);
  const double loads = (rows + vectors) * LoadCost(workload, stage, target);
  // Cycles of one reduce step: the multiplications or the loads, whichever is more, then what
  // feeds the panel from L2 and what the loop itself costs; a chain of fewer than eight
  // additions waits for its own results.
  const double cycles =
      std::max({rows * vectors, loads, 4.0}) + 0.3 * vectors + 0.05 * rows + 0.2;
  return lanes * balance * rows * vectors / cycles;
}

double TileScore(const ir::Workload& workload, const TileForm& form, const TileChoice& tile,
                 const ir::Target& target) {
  return TileEfficiency(workload, form, tile, target) /
         Unevenness(workload.stages[form.anchor], form, tile, target);
}

TileChoice NominalTile(const TraceWriter& writer, const TileForm& form, const ir::Target& target) {
  const ir::Stage& stage = writer.stage(form.anchor);
  const bool contraction = RoleOf(writer.workload(), stage) == Role::kContraction;
  TileChoice best;
  int64_t taps = 1;
  for (int r : form.unrolled) taps *= stage.Extent(r);
  const int64_t most_steps = kMostWindowSteps / form.registers;
  // One row or two want as many independent sums as hide the latency of a multiply-add.
  int64_t most_vectors = !contraction           ? 2
                         : form.rows_total == 1 ? 8
                         : form.rows_total == 2
                             ? 6
                             : (target.As<ir::CpuTarget>().registers >= 32 ? 4 : 3);
  // Each step down columns is to another page: many at once, but a share for every thread.
  if (!contraction && form.row_axis < 0) {
    int64_t outer = 1;
    for (int a : form.outer) outer *= stage.spatial[a];
    const int64_t share = outer > 1 ? form.vectors_total : form.vectors_total / target.threads;
    most_vectors = std::clamp<int64_t>(std::min(share, most_steps / taps), 2,
                                       std::max<int64_t>(2, 8 / form.registers));
  }
  const int64_t shared = contraction ? SharedByTaps(writer, form, target) : 0;
  if (shared > 0) most_vectors = std::max<int64_t>(most_vectors, 4);
  const int64_t rows_at_most = contraction ? MostRows(writer, form, target) : 7;
  double best_score = -1;
  for (int64_t vectors = 1; vectors <= std::min(most_vectors, form.vectors_total); ++vectors) {
    if (vectors > 1 && !form.FitsBlock(vectors)) continue;
    const int64_t others = vectors + (form.pairs ? 2 : shared > 0 ? 0 : 1);
    int64_t most_rows =
        contraction
            ? (target.As<ir::CpuTarget>().registers - others) / (vectors + shared)
            : (target.As<ir::CpuTarget>().registers / 2) / (vectors * form.registers);
    most_rows = std::clamp<int64_t>(most_rows, 1, rows_at_most);
    if (!contraction) most_rows = std::clamp<int64_t>(most_steps / (taps * vectors), 1, most_rows);
    for (int64_t rows = 1; rows <= std::min(most_rows, form.rows_total); ++rows) {
      if (!form.FitsRowBlock(rows)) continue;
      const double score =
          TileScore(writer.workload(), form, {.rows = rows, .vectors = vectors}, target);
      if (score > best_score + 1e-9) {
        best_score = score;
        best.rows = rows;
        best.vectors = vectors;
      }
    }
  }
  best.rows = CeilDiv(form.rows_total, CeilDiv(form.rows_total, best.rows));
  // The side with less imbalance between threads goes outside; ties go to the rows.
  int64_t outer = 1;
  for (int a : form.outer) outer *= stage.spatial[a];
  int64_t columns = CeilDiv(form.vectors_total, best.vectors);
  auto waste = [&](int64_t n) {
    return static_cast<double>(CeilDiv(n, target.threads) * target.threads) /
           static_cast<double>(n);
  };
  best.order = waste(outer) <= waste(columns) + 1e-9 && outer > 1
                   ? TileChoice::Order::kRowsOutside
                   : TileChoice::Order::kColumnsOutside;
  return best;
}

}  // namespace hone::schedule
