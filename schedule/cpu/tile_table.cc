#include "schedule/cpu/tile_table.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "ir/cpu/cpu_target.h"
#include "schedule/access.h"

namespace hone::schedule {

namespace {

constexpr int64_t kMostRows = 16;
constexpr int64_t kMostVectors = 6;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Row heights that make different tilings: for a number of tiles only the largest height counts.
std::vector<int64_t> Heights(int64_t total) {
  std::vector<int64_t> out;
  for (int64_t h = 1; h <= std::min(kMostRows, total); ++h) {
    int64_t balanced = CeilDiv(total, CeilDiv(total, h));
    if (balanced == h) out.push_back(h);
  }
  return out;
}

/// Vector registers that one step of a product's tile holds: its sums, a panel's vectors and a
/// broadcast. With one row a panel's vector has one reader, which takes it from memory; so has a
/// broadcast with one vector, where multiply-adds take broadcasts from memory.
int64_t LiveVectors(int64_t rows, int64_t vectors, const ir::Target& target) {
  if (rows == 1) return vectors + 1;
  if (vectors == 1 && TakesBroadcastsFromMemory(target)) return rows + 1;
  return rows * vectors + vectors + 1;
}

/// Lines that one set of the first cache holds, and the bytes after which sets repeat.
constexpr int64_t kL1Ways = 8;

}  // namespace

DecisionTable TileTable(int64_t rows_total, const TileForm& form, const ir::Target& target,
                        bool contraction) {
  DecisionTable t{"tile", {"rows", "vectors"}, {}};
  for (int64_t h : Heights(rows_total)) {
    const int64_t most_vectors = rows_total == 1 ? 2 * kMostVectors : kMostVectors;
    for (int64_t v = 1; v <= std::min(most_vectors, form.vectors_total); ++v) {
      if (v > 1 && !form.FitsBlock(v)) continue;
      if (contraction && LiveVectors(h, v, target) > target.As<ir::CpuTarget>().registers) continue;
      if (!contraction && h * v * form.registers > target.As<ir::CpuTarget>().registers) continue;
      t.rows.push_back({h, v});
    }
  }
  if (t.rows.empty()) t.rows.push_back({1, 1});
  return t;
}

DecisionTable BlockTable(int64_t extent) {
  DecisionTable t{"reduce", {"reduce_block"}, {{0}}};
  for (int64_t parts : {2, 3, 4, 6, 8}) {
    if (extent / parts >= 128 && extent % parts == 0) t.rows.push_back({extent / parts});
  }
  return t;
}

bool TakesBroadcastsFromMemory(const ir::Target& target) {
  return target.As<ir::CpuTarget>().isa == ir::Isa::kAvx512;
}

int64_t RowsWithinASet(const ir::Workload& w, const TileForm& form, const ir::Target& target) {
  const ir::Stage& stage = w.stages[form.anchor];
  const int64_t span = target.As<ir::CpuTarget>().l1_bytes / kL1Ways;
  int64_t most = kMostRows;
  for (const Access& a : AccessesOf(w, stage)) {
    if (!a.linear[form.row_axis] || a.stride[form.row_axis] == 0) continue;
    bool reduced = false;
    for (int r = stage.num_spatial(); r < stage.num_axes(); ++r)
      reduced |= stage.Extent(r) > 1 && a.DependsOn(r);
    if (!reduced || (form.vector_axis >= 0 && !a.SharedAlong(form.vector_axis))) continue;
    const int64_t bytes = std::abs(a.stride[form.row_axis]) * ir::SizeOf(w.tensors[a.tensor].dtype);
    most = std::min(most, kL1Ways * span / std::gcd(bytes, span));
  }
  return most;
}

}  // namespace hone::schedule
