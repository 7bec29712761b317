#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/status.h"
#include "schedule/cpu/attention_nest.h"
#include "schedule/cpu/panels.h"
#include "schedule/nest_builder.h"

// Attention by blocks of keys: for every block of rows one block of keys after the other, with the
// scores, their exponentials and what is carried of each row in caches.
namespace hone::schedule {

namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Stages that read the product, and those that read them.
std::vector<int> StagesAfter(const TraceWriter& w, const AttentionForm& f) {
  std::vector<int> after;
  for (int id : LiveStages(w.schedule())) {
    bool reads = id != f.product && Loads(w.stage(id), w.stage(f.product));
    for (int p : after) reads |= Loads(w.stage(id), w.stage(p));
    if (reads) after.push_back(id);
  }
  return after;
}

/// Copies the values of each head side by side where other heads lie between their rows. Where
/// blocks do not divide the keys they are copied in whole blocks, with zeros beyond the last key.
void PackValues(TraceWriter& w, const AttentionForm& f, int vector, int64_t block,
                const ir::Target& target) {
  const ir::Stage& product = w.stage(f.product);
  const int key = product.num_spatial();
  if (f.values->kind != ir::ExprKind::kLoad) return;
  const bool whole = f.keys % block == 0;
  bool apart = false;
  for (const Access& a : AccessesOf(w.workload(), product))
    apart |= a.tensor == f.values->id && a.stride[key] > product.spatial[vector];
  if (whole && !apart) return;
  std::vector<std::string> front, last;
  for (size_t d = 0; d < f.values->args.size(); ++d) {
    const ir::Expr& index = f.values->args[d];
    const bool plain = index->kind == ir::ExprKind::kVar;
    if (ir::DependsOnVar(index, key)) {
      if (!plain || !last.empty()) return;
      last = {fmt::format("i{}/{}", d, block), fmt::format("i{}%{}", d, block)};
      if (whole) last = {fmt::format("i{}", d)};
    } else if (!ir::DependsOnVar(index, vector)) {
      front.push_back(fmt::format("i{}", d));
    }
  }
  for (size_t d = 0; d < f.values->args.size(); ++d) {
    if (!ir::DependsOnVar(f.values->args[d], vector)) continue;
    if (whole && f.values->args[d]->kind != ir::ExprKind::kVar) return;
    last.push_back(fmt::format("i{}", d));
  }
  if (last.size() != (whole ? 2 : 3)) return;
  front.insert(front.end(), last.begin(), last.end());
  const int copy = static_cast<int>(w.workload().stages.size());
  w.Emit(fmt::format("{} = pack({}, {}, [{}])", w.NextStage(), product.name,
                     w.workload().tensors[f.values->id].name, fmt::join(front, ", ")));
  if (w.status().ok() && w.workload().tensors[f.values->id].kind != ir::TensorKind::kConstant)
    ScheduleMap(w, copy, 1, target);
}

/// Copies the keys for the scores' tile. Where blocks do not divide the keys they are copied, like
/// the values, in whole blocks.
void PackKeys(TraceWriter& w, const AttentionForm& f, TileForm scores, int64_t block, int64_t panel,
              const ir::Target& target) {
  if (f.keys % block == 0) return PackPanels(w, scores, panel, target);
  for (const Access& a : AccessesOf(w.workload(), w.stage(f.contraction))) {
    if (a.SharedAlong(scores.vector_axis) || std::ranges::count(scores.packed, a.tensor) > 0)
      continue;
    scores.packed.push_back(a.tensor);
  }
  const auto copy = static_cast<int>(w.workload().stages.size());
  PackPanels(w, scores, block, target);
  // Rows of the copy that lie some KiB apart would share the sets of the first cache.
  constexpr int64_t kApart = 256, kPadding = 16;
  const bool made = w.status().ok() && scores.packed.size() == 1 &&
                    w.workload().tensors[scores.packed[0]].kind != ir::TensorKind::kConstant;
  if (!made || block % kApart != 0) return;
  w.Emit(fmt::format("align({}, {}, {})", w.name(copy), w.stage(copy).num_spatial() - 1, kPadding));
}

/// Vectors along the rows for what is computed once a row and block.
void VectorizeRows(TraceWriter& w, int stage, int lanes, int64_t rows, int64_t all_rows) {
  if (w.stage(stage).spatial.back() != all_rows) return;
  VectorizeLast(w, stage, lanes, rows, all_rows % rows == 0);
}

}  // namespace

int64_t OnlineRows(int64_t wanted, int64_t rows, bool must_divide) {
  wanted = std::clamp<int64_t>(wanted, 1, rows);
  const int64_t fewest = CeilDiv(rows, wanted);
  for (int64_t blocks = fewest; blocks <= 2 * fewest; ++blocks) {
    if (rows % blocks == 0) return rows / blocks;
  }
  if (!must_divide) return CeilDiv(rows, fewest);
  int64_t best = rows;
  for (int64_t block = rows; block >= 1; --block) {
    // How many times as long as wanted, or as short.
    const auto apart = [&](int64_t n) { return std::max(n, wanted) * rows / std::min(n, wanted); };
    if (rows % block == 0 && apart(block) < apart(best)) best = block;
  }
  return best;
}

int64_t OnlineKeys(int64_t wanted, int64_t keys, int64_t lanes) {
  if (keys <= lanes) return keys;
  wanted = std::max(wanted, lanes);
  const int64_t blocks = std::max<int64_t>(1, (keys + wanted / 2) / wanted);
  return std::min(CeilDiv(CeilDiv(keys, blocks), lanes) * lanes, keys);
}

TileChoice OnlineTile(const TileForm& form, const AttentionChoice& choice, int64_t rows,
                      int64_t keys) {
  TileChoice tile = TileOfScores(form, choice, form.row_axis < 0 ? 1 : rows);
  while (CeilDiv(keys, form.lanes) % tile.vectors != 0) --tile.vectors;
  return tile;
}

absl::Status PlanAttentionByKeys(TraceWriter& w, const AttentionChoice& choice,
                                 const AttentionForm& f, const ir::Target& target) {
  HONE_ASSIGN_OR_RETURN(AttentionOwner own, AxesOfProduct(w, f));
  const std::vector<int> after = StagesAfter(w, f);
  std::vector<int> apart = StagesOf(f);
  apart.insert(apart.end(), after.begin(), after.end());
  HONE_RETURN_IF_ERROR(ScheduleOthers(w, apart, target));
  // Keys are packed before they are cut into blocks.
  TileForm scores = FindTileForm(w, {f.chain.back(), f.chain.front(), {}, 0}, target);
  if (scores.vector_axis < 0) return UnfitAttention("its scores have no keys");
  const int64_t keys = OnlineKeys(choice.key_block, f.keys, scores.lanes);
  const int64_t all_rows = w.stage(f.product).spatial[own.query];
  const int64_t rows = OnlineRows(choice.query_rows, all_rows, HasUnevenOthers(w, own, target));
  const TileChoice tile = OnlineTile(scores, choice, rows, keys);
  PackKeys(w, f, scores, keys, tile.vectors * scores.lanes, target);
  PackValues(w, f, own.vector, keys, target);
  const int first = static_cast<int>(w.workload().stages.size());
  w.Emit(fmt::format("{} = algorithm({}, online_softmax, {})", w.NextStage(), w.name(f.product),
                     keys));
  HONE_RETURN_IF_ERROR(w.status());
  const int scored = first + static_cast<int>(f.chain.size());
  const auto id = [&](OnlineStage s) { return scored + static_cast<int>(s); };
  std::vector<int> chain(f.chain.size());
  std::iota(chain.begin(), chain.end(), first);
  // The product's axes stand after the blocks' axis.
  own.stage = id(kOutput);
  ++own.query, ++own.vector;
  for (int& a : own.others) ++a;
  const TileForm form = FindTileForm(w, {id(kPartial), id(kPartial), {}, 0}, target);
  const TileChoice output = OutputTile(w, form, rows, target);
  PackPanels(w, form, output.vectors * form.lanes, target);
  const BlockLoops loops = OwnerLoops(w, own, form, output, rows, 0, false, target);
  const std::string at = AxisLoop(w, own.stage, 0);
  w.Emit(fmt::format("compute_at({}, {}, register)", w.name(id(kPartial)), loops.tile));
  ScheduleTileLoops(w, form);
  for (OnlineStage s : {kScale, kSum, kFade, kBlockSum, kWeights, kShift, kMax, kBlockMax})
    w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(id(s)), at));
  const int lanes = LanesFor(ir::DType::kF32, target);
  for (OnlineStage s : {kScale, kSum, kFade, kShift, kMax})
    VectorizeRows(w, id(s), lanes, rows, all_rows);
  VectorizeLast(w, id(kWeights), lanes, keys, true);
  ScheduleRowSum(w, id(kBlockSum), lanes);
  ScheduleRowSum(w, id(kBlockMax), lanes);
  ScheduleScores(w, FormOfScores(w, chain, target), tile, at, target);
  if (!w.workload().tensors[w.stage(f.product).results[0]].output)
    w.Emit(fmt::format("inline({})", w.name(f.product)));
  else
    ScheduleMap(w, f.product, 1, target);
  apart.clear();
  for (int stage : LiveStages(w.schedule())) {
    if (std::ranges::count(after, stage) == 0) apart.push_back(stage);
  }
  HONE_RETURN_IF_ERROR(ScheduleOthers(w, apart, target));
  return w.status();
}

}  // namespace hone::schedule
