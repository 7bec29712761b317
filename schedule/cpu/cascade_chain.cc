#include "schedule/cpu/cascade_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ir/cpu/cpu_target.h"
#include "ir/index/simplify.h"
#include "schedule/nest_builder.h"
#include "schedule/stage_cost.h"
#include "schedule/structure.h"

namespace hone::schedule {

namespace {

constexpr size_t kMostLayers = 4;
constexpr int64_t kSumBytes = 4;  ///< of a sum that waits for the next block

bool IsMap(const ir::Stage& s) { return s.combiner == ir::Combiner::kNone; }

bool IsOutput(const ir::Workload& w, const ir::Stage& s) {
  return std::ranges::any_of(s.results, [&](int r) { return w.tensors[r].output; });
}

/// How often `reader` loads `producer` at its own point; 0 where some load is at another.
int LoadsAtOnePoint(const ir::Workload& w, const ir::Stage& reader, const ir::Stage& producer) {
  if (!IsMap(reader) || reader.spatial != producer.spatial) return 0;
  int loads = 0;
  for (const Access& a : AccessesOf(w, reader)) {
    if (std::ranges::find(producer.results, a.tensor) == producer.results.end()) continue;
    for (size_t k = 0; k < a.indices.size(); ++k) {
      const ir::Expr& i = a.indices[k];
      const bool own = i->kind == ir::ExprKind::kVar && i->id == static_cast<int>(k);
      if (!own && !(reader.spatial[k] == 1 && ir::AsInt(i) == 0)) return 0;
    }
    ++loads;
  }
  return loads;
}

class ChainFinder {
 public:
  ChainFinder(TraceWriter& writer, const ir::Target& target)
      : w_(writer), original_(writer.workload()), target_(target) {}

  std::optional<CascadeChain> Find() {
    for (const ir::Stage& s : original_.stages) {
      if (s.scan >= 0 || ir::IsTuple(s.combiner) || s.results.size() != 1) return std::nullopt;
    }
    if (original_.Outputs().size() != 1 || CountReductions() < 2 || !InlineMaps() ||
        !w_.status().ok() || !FindLayers())
      return std::nullopt;
    ChooseBands();
    if (chain_.band_axis < 0) return std::nullopt;
    return std::move(chain_);
  }

 private:
  int CountReductions() const {
    return static_cast<int>(
        std::ranges::count_if(original_.stages, [](const ir::Stage& s) { return !IsMap(s); }));
  }

  std::vector<int> ReadersOf(int id) const {
    std::vector<int> readers;
    for (int r : LiveStages(w_.schedule())) {
      if (r != id && w_.schedule().stages[r].place != Place::kInline &&
          Loads(w_.stage(r), w_.stage(id)))
        readers.push_back(r);
    }
    return readers;
  }

  bool ReadsAStage(const ir::Stage& s) const {
    const std::vector<Access> accesses = AccessesOf(w_.workload(), s);
    return std::ranges::any_of(
        accesses, [&](const Access& a) { return w_.workload().Producer(a.tensor) >= 0; });
  }

  bool StoresAReduction(const ir::Stage& s) const {
    for (const Access& a : AccessesOf(w_.workload(), s)) {
      const int p = w_.workload().Producer(a.tensor);
      if (p >= 0 && !IsMap(w_.stage(p)) && LoadsAtOnePoint(w_.workload(), s, w_.stage(p)) > 0)
        return true;
    }
    return false;
  }

  // The maps that stay are those that store a layer, and costly preparations of inputs.
  bool InlineMaps() {
    for (int id : LiveStages(w_.schedule())) {
      const ir::Stage stage = w_.stage(id);
      if (!IsMap(stage) || IsOutput(w_.workload(), stage)) continue;
      const std::vector<int> readers = ReadersOf(id);
      const int loads =
          readers.size() == 1 ? LoadsAtOnePoint(w_.workload(), w_.stage(readers[0]), stage) : 0;
      const bool into_map = loads == 1 || (loads > 1 && CostOf(stage) <= 2);
      if (!into_map) {
        if (StoresAReduction(stage)) continue;
        if (ReadsAStage(stage)) {
          if (CostOf(stage) > 0) return false;
        } else if (IsCostlyInput(original_, id) || CostOf(stage) > 0) {
          chain_.before.push_back(id);
          continue;
        }
      }
      w_.Emit(fmt::format("inline({})", stage.name));
      if (!w_.status().ok()) return false;
    }
    return true;
  }

  // The layer whose result this is; nothing where it is stored by something else.
  std::optional<CascadeLayer> LayerOf(int id) const {
    const ir::Workload& w = w_.workload();
    CascadeLayer layer{id, id, {}, false};
    if (IsMap(w_.stage(id))) {
      layer.anchor = -1;
      for (const Access& a : AccessesOf(w, w_.stage(id))) {
        const int p = w.Producer(a.tensor);
        if (p < 0 || p == layer.anchor) continue;
        if (layer.anchor >= 0 || IsMap(w_.stage(p)) ||
            LoadsAtOnePoint(w, w_.stage(id), w_.stage(p)) == 0)
          return std::nullopt;
        layer.anchor = p;
      }
      if (layer.anchor < 0 || ReadersOf(layer.anchor).size() != 1) return std::nullopt;
    }
    const ir::Stage& anchor = w_.stage(layer.anchor);
    const Role role = RoleOf(w, anchor);
    const int v = VectorAxis(w, anchor);
    if ((role != Role::kContraction && role != Role::kWindow) || v < 0 ||
        (layer.owner != layer.anchor && VectorAxis(w, w_.stage(layer.owner)) != v))
      return std::nullopt;
    layer.contraction = role == Role::kContraction;
    layer.tile = FindTileForm(w_, {layer.owner, layer.anchor, {}, 0}, target_);
    const bool constant = std::ranges::all_of(
        layer.tile.packed, [&](int t) { return w.tensors[t].kind == ir::TensorKind::kConstant; });
    if (!constant || layer.tile.dot > 1 || layer.tile.widened >= 0 || layer.tile.row_axis < 0 ||
        !w_.stage(layer.owner).store.empty())
      return std::nullopt;
    return layer;
  }

  bool FindLayers() {
    const ir::Workload& w = w_.workload();
    int id = w.Producer(w.Outputs()[0]);
    size_t others = chain_.before.size();
    while (id >= 0) {
      const std::optional<CascadeLayer> layer = LayerOf(id);
      if (!layer || chain_.layers.size() == kMostLayers) return false;
      chain_.layers.insert(chain_.layers.begin(), *layer);
      others += layer->owner == layer->anchor ? 1 : 2;
      id = -1;
      for (const Access& a : AccessesOf(w, w_.stage(layer->anchor))) {
        const int p = w.Producer(a.tensor);
        if (p < 0 || p == id || std::ranges::count(chain_.before, p) > 0) continue;
        if (id >= 0 || ReadersOf(p).size() != 1) return false;
        id = p;
      }
    }
    size_t live = 0;
    for (int s : LiveStages(w_.schedule())) live += w_.schedule().stages[s].place != Place::kInline;
    return chain_.layers.size() >= 2 && live == others;
  }

  // Bands are of the innermost axis around the last layer's tile, or of its rows.
  void ChooseBands() {
    const CascadeLayer& last = chain_.last();
    const ir::Stage& owner = w_.stage(last.owner);
    for (int a : last.tile.outer) {
      if (owner.spatial[a] > 1) chain_.band_axis = a;
    }
    if (chain_.band_axis < 0) chain_.band_axis = last.tile.row_axis;
    for (int a : last.tile.outer) {
      if (a != chain_.band_axis) chain_.outside.push_back(a);
    }
    chain_.band_extent = owner.spatial[chain_.band_axis];
  }

  TraceWriter& w_;
  const ir::Workload original_;
  const ir::Target& target_;
  CascadeChain chain_;
};

}  // namespace

std::optional<CascadeChain> FindCascade(TraceWriter& writer, const ir::Target& target) {
  return ChainFinder(writer, target).Find();
}

BandCost CostOfBands(const TraceWriter& w, const CascadeChain& chain, int64_t rows, int64_t block) {
  BandCost cost;
  cost.rows = rows;
  cost.block = block;
  cost.bands = chain.band_extent / rows;
  for (const ir::Tensor& t : w.workload().tensors) {
    if (t.kind == ir::TensorKind::kConstant) cost.constant_bytes += t.Bytes();
  }
  std::vector<int64_t> need = w.stage(chain.last().owner).spatial;
  for (int a : chain.outside) cost.bands *= std::exchange(need[a], 1);
  need[chain.band_axis] = rows;
  double parts = static_cast<double>(cost.bands);
  if (block > 0) {
    int64_t elements = 1;
    for (int64_t n : need) elements *= n;
    cost.scratch_bytes += elements * kSumBytes;
  }
  for (size_t k = chain.layers.size(); k-- > 0;) {
    const ir::Stage& anchor = w.stage(chain.layers[k].anchor);
    double points = 1, plain = 1, reduce = 1;
    for (int64_t n : need) points *= static_cast<double>(n);
    for (int64_t n : anchor.spatial) plain *= static_cast<double>(n);
    for (int64_t n : anchor.reduce) reduce *= static_cast<double>(n);
    cost.multiply_adds += points * reduce * parts;
    cost.plain += plain * reduce;
    const bool blocked = block > 0 && k + 1 == chain.layers.size();
    if (blocked) parts *= reduce / static_cast<double>(block);
    if (k == 0) break;
    const ir::Stage& producer = w.stage(chain.layers[k - 1].owner);
    const std::vector<int64_t> mine = std::move(need);
    need = producer.spatial;
    for (const Access& a : AccessesOf(w.workload(), anchor)) {
      if (a.tensor != producer.results[0]) continue;
      for (size_t d = 0; d < need.size(); ++d) {
        int64_t span = 1;
        for (const auto& t : ir::ToLinear(a.indices[d], RangesOf(anchor)).terms) {
          const bool axis = t.atom->kind == ir::ExprKind::kVar;
          const int64_t extent = !axis ? producer.spatial[d]
                                 : t.atom->id < anchor.num_spatial()
                                     ? mine[static_cast<size_t>(t.atom->id)]
                                 : blocked ? block
                                           : anchor.Extent(t.atom->id);
          span += std::abs(t.coefficient) * (extent - 1);
        }
        need[d] = std::min(need[d], span);
      }
    }
    int64_t elements = 1, all = 1;
    for (size_t d = 0; d < need.size(); ++d) elements *= need[d], all *= producer.spatial[d];
    cost.whole |= elements == all && cost.bands > 1;
    cost.scratch_bytes += elements * ir::SizeOf(w.workload().tensors[producer.results[0]].dtype);
  }
  return cost;
}

double ScoreOfBands(const BandCost& cost, const ir::Target& target) {
  constexpr double kNear = 1.5, kEachDoubling = 0.1, kSumsAway = 2, kAddsPerByte = 3;
  const auto l2_bytes = static_cast<double>(target.As<ir::CpuTarget>().l2_bytes);
  const double near = kNear * l2_bytes;
  const double over = std::max(1.0, static_cast<double>(cost.scratch_bytes) / near);
  // Between two blocks the sums go to memory and come back.
  const double sums = cost.block > 0 ? 1 + kSumsAway / static_cast<double>(cost.block) : 1;
  // Weights that do not stay near are fetched anew for every band.
  const auto weights = static_cast<double>(cost.constant_bytes);
  const double fetched =
      weights > l2_bytes / 2 ? kAddsPerByte * weights * static_cast<double>(cost.bands) : 0;
  return (cost.multiply_adds * (1 + kEachDoubling * std::log2(over)) * sums + fetched) *
         ThreadImbalance(cost.bands, target);
}

std::vector<int64_t> RowsOfBands(const CascadeChain& chain) {
  constexpr int64_t kMostRows = 128;
  std::vector<int64_t> rows;
  for (int64_t r = 1; r < std::min(chain.band_extent, kMostRows + 1); ++r) {
    if (chain.band_extent % r == 0) rows.push_back(r);
  }
  return rows;
}

std::vector<int64_t> BlocksOfCascade(const TraceWriter& w, const CascadeChain& chain) {
  const CascadeLayer& last = chain.last();
  const ir::Stage& anchor = w.stage(last.anchor);
  std::vector<int64_t> blocks;
  if (!last.contraction || anchor.num_reduce() != 1 || last.owner == last.anchor) return blocks;
  const int lanes = chain.layers[chain.layers.size() - 2].tile.lanes;
  for (int64_t block = lanes; block < anchor.reduce[0]; block += lanes) {
    if (anchor.reduce[0] % block == 0) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace hone::schedule
