#include "schedule/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/core/check.h"
#include "base/core/hash128.h"
#include "base/status.h"
#include "schedule/structure.h"

namespace hone::schedule {

namespace {

constexpr int64_t kMostRows = 16;
constexpr int64_t kMostVectors = 6;
/// Unrolled multiply-adds of one tile and its siblings above which code generation costs more than
/// a candidate is worth.
constexpr int64_t kMostSteps = 700;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

void Apply(const std::string& column, int64_t value, PlanChoice* c) {
  if (column == "rows")
    c->tile.rows = value;
  else if (column == "vectors")
    c->tile.vectors = value;
  else if (column == "order")
    c->tile.order = static_cast<TileChoice::Order>(value);
  else if (column == "reduce_block")
    c->tile.reduce_block = value;
  else if (column == "tile_rows")
    c->tile_rows = value;
  else if (column == "partial_vectors")
    c->partial_vectors = value;
  else if (column == "unroll")
    c->unroll = value;
  else
    HONE_CHECK(false);
}

/// Row heights that make different tilings: for a number of tiles only the largest height counts.
std::vector<int64_t> Heights(int64_t total) {
  std::vector<int64_t> out;
  for (int64_t h = 1; h <= std::min(kMostRows, total); ++h) {
    int64_t balanced = CeilDiv(total, CeilDiv(total, h));
    if (balanced == h) out.push_back(h);
  }
  return out;
}

DecisionTable TileTable(int64_t rows_total, const TileForm& form, const ir::Target& target,
                        bool contraction) {
  DecisionTable t{"tile", {"rows", "vectors"}, {}};
  for (int64_t h : Heights(rows_total)) {
    const int64_t most_vectors = rows_total == 1 ? 2 * kMostVectors : kMostVectors;
    for (int64_t v = 1; v <= std::min(most_vectors, form.vectors_total); ++v) {
      if (v > 1 && !form.FitsBlock(v)) continue;
      const int64_t live = h * v + v + 1;
      if (contraction && live > target.registers + 2) continue;
      if (!contraction && h * v > target.registers) continue;
      t.rows.push_back({h, v});
    }
  }
  if (t.rows.empty()) t.rows.push_back({1, 1});
  return t;
}

/// 0 (whole) and divisor-like blocks of a long reduction.
DecisionTable BlockTable(int64_t extent) {
  DecisionTable t{"reduce", {"reduce_block"}, {{0}}};
  for (int64_t parts : {2, 3, 4, 6, 8}) {
    if (extent / parts >= 128 && extent % parts == 0) t.rows.push_back({extent / parts});
  }
  return t;
}

}  // namespace

PlanChoice Sketch::Fill(const std::vector<int>& rows) const {
  PlanChoice c = base;
  for (size_t t = 0; t < tables.size(); ++t) {
    for (size_t k = 0; k < tables[t].columns.size(); ++k)
      Apply(tables[t].columns[k], tables[t].rows[rows[t]][k], &c);
  }
  return c;
}

uint64_t Sketch::Product() const {
  uint64_t n = 1;
  for (const auto& t : tables) n *= t.rows.size();
  return n;
}

Space::Space(const ir::Workload& workload, const ir::Target& target, ir::AccuracyClass accuracy)
    : workload_(workload), target_(target), form_(FindPlanForm(workload, target)) {
  switch (form_.kind) {
    case PlanForm::Kind::kTile: AddTileSketches(accuracy); break;
    case PlanForm::Kind::kRows:
      sketches_.push_back({"rows", {}, {{"partial", {"partial_vectors"}, {{1}, {2}, {4}, {8}}}}});
      break;
    case PlanForm::Kind::kMap: {
      DecisionTable t{"unroll", {"unroll"}, {{1}}};
      for (int64_t u : {2, 4, 8}) {
        if (form_.row_length >= u * form_.lanes) t.rows.push_back({u});
      }
      sketches_.push_back({"map", {}, {t}});
      break;
    }
    case PlanForm::Kind::kScan: {
      Sketch scan{"scan", {}, {}};
      if (form_.tile.anchor >= 0) {
        scan.tables.push_back(TileTable(form_.tile.rows_total, form_.tile, target_, true));
      }
      sketches_.push_back(std::move(scan));
      break;
    }
  }
  Finish();
}

void Space::AddTileSketches(ir::AccuracyClass accuracy) {
  const bool own = form_.tile.owner == form_.tile.anchor;
  const bool contraction =
      !form_.tile.packed.empty() ||
      RoleOf(workload_, workload_.stages[form_.tile.anchor]) == Role::kContraction;
  DecisionTable tile = TileTable(form_.tile.rows_total, form_.tile, target_, contraction);
  DecisionTable order{"order", {"order"}, {{0}, {1}}};
  std::vector<std::pair<std::string, Padding>> forms = {{"direct", Padding::kPeeled}};
  if (form_.prepared) {
    forms = {{"direct/peeled", Padding::kPeeled},
             {"direct/guard", Padding::kGuard},
             {"direct/tile", Padding::kTile},
             {"direct/root", Padding::kRoot}};
  }
  for (const auto& [name, padding] : forms) {
    Sketch s;
    s.name = name;
    s.base.padding = padding;
    s.tables = {tile, order};
    if (own && contraction) s.tables.push_back(BlockTable(form_.reduce_inner));
    sketches_.push_back(std::move(s));
  }
  if (form_.winograd) {
    AddWinograd(2);
    if (accuracy != ir::AccuracyClass::kStrict) AddWinograd(4);
  }
}

void Space::AddWinograd(int m) {
  PlanChoice probe;
  probe.winograd = m;
  probe.tile = {6, 1, 0, TileChoice::Order::kRowsOutside};
  if (!PlanTrace(workload_, target_, probe).ok()) return;
  const auto& stage = workload_.stages[form_.tile.anchor];
  const int64_t tile_rows = CeilDiv(stage.spatial[1], m),
                tiles = tile_rows * CeilDiv(stage.spatial[2], m);
  DecisionTable tile = TileTable(tiles, form_.tile, target_, true);
  std::erase_if(tile.rows, [](const auto& r) { return r[0] * r[1] < 8; });
  if (tile.rows.empty()) return;
  Sketch three;
  three.name = fmt::format("winograd{}/three_phases", m);
  three.base.winograd = m;
  three.tables = {tile};
  Sketch one = three;
  one.name = fmt::format("winograd{}/one_phase", m);
  one.base.one_phase = true;
  DecisionTable blocks{"block", {"tile_rows"}, {}};
  for (int64_t b : {1, 2, 3, 4, 7}) {
    if (b <= tile_rows) blocks.rows.push_back({b});
  }
  one.tables.push_back(blocks);
  sketches_.push_back(std::move(three));
  sketches_.push_back(std::move(one));
}

void Space::Finish() {
  std::string all;
  for (const Sketch& s : sketches_) {
    first_id_.push_back(product_);
    product_ += s.Product();
    std::string text = s.name;
    for (const auto& t : s.tables) {
      text += "|" + t.name;
      for (const auto& r : t.rows) {
        for (int64_t v : r) text += fmt::format(",{}", v);
        text += ";";
      }
    }
    all += text + "\n";
  }
  hash_ = HashBytes(all).ToHex();
  const PlanChoice nominal = NominalChoice(form_);
  for (uint64_t id = 0; id < product_; ++id) {
    PlanChoice c = ChoiceOf(id);
    if (c.winograd == nominal.winograd && c.padding == nominal.padding &&
        c.tile.rows == nominal.tile.rows && c.tile.vectors == nominal.tile.vectors &&
        c.tile.order == nominal.tile.order && c.tile.reduce_block == 0 &&
        c.partial_vectors == nominal.partial_vectors && c.unroll == nominal.unroll) {
      default_id_ = id;
      break;
    }
  }
}

Candidate Space::At(uint64_t id) const {
  HONE_CHECK(id < product_);
  Candidate c;
  c.sketch = static_cast<int>(std::upper_bound(first_id_.begin(), first_id_.end(), id) -
                              first_id_.begin()) -
             1;
  uint64_t rest = id - first_id_[c.sketch];
  for (const auto& t : sketches_[c.sketch].tables) {
    c.rows.push_back(static_cast<int>(rest % t.rows.size()));
    rest /= t.rows.size();
  }
  return c;
}

uint64_t Space::IdOf(const Candidate& c) const {
  uint64_t id = 0, scale = 1;
  const auto& tables = sketches_[c.sketch].tables;
  for (size_t t = 0; t < tables.size(); ++t) {
    id += scale * static_cast<uint64_t>(c.rows[t]);
    scale *= tables[t].rows.size();
  }
  return first_id_[c.sketch] + id;
}

PlanChoice Space::ChoiceOf(uint64_t id) const {
  Candidate c = At(id);
  return sketches_[c.sketch].Fill(c.rows);
}

bool Space::Admits(uint64_t id) const {
  if (id == default_id_) return true;
  const PlanChoice c = ChoiceOf(id);
  if (form_.kind != PlanForm::Kind::kTile) return true;
  const ir::Stage& anchor = workload_.stages[form_.tile.anchor];
  int64_t taps = 1;
  for (int r : form_.tile.unrolled) taps *= anchor.Extent(r);
  if (c.winograd == 0) {
    const int64_t siblings = c.padding == Padding::kPeeled && form_.tile.border ? 3 : 1;
    const bool unrolled =
        c.padding == Padding::kPeeled || c.padding == Padding::kGuard || form_.tile.packed.empty();
    if (c.tile.rows * c.tile.vectors * (unrolled ? taps : 1) * siblings > kMostSteps) return false;
    return true;
  }
  const int64_t alpha = c.winograd + 2;
  if (!c.one_phase) return true;
  // V of a block of tile rows and M of one panel live in scratch: at most L2.
  const int64_t tiles = c.tile_rows * CeilDiv(anchor.spatial[2], c.winograd);
  const int64_t channels = anchor.Extent(form_.tile.reduce.back());
  return alpha * alpha * tiles * (channels + c.tile.vectors * target_.lanes) * 4 <=
         target_.l2_bytes;
}

uint64_t Space::admitted() const {
  uint64_t n = 0;
  for (uint64_t id = 0; id < product_; ++id) n += Admits(id);
  return n;
}

absl::StatusOr<Trace> Space::TraceOf(uint64_t id) const {
  return PlanTrace(workload_, target_, id == default_id_ ? NominalChoice(form_) : ChoiceOf(id));
}

std::optional<uint64_t> Space::Locate(const std::string& trace_text) const {
  for (uint64_t id = 0; id < product_; ++id) {
    if (!Admits(id)) continue;
    auto t = TraceOf(id);
    if (t.ok() && ToText(*t) == trace_text) return id;
  }
  return std::nullopt;
}

std::vector<uint64_t> Space::Neighbours(uint64_t id) const {
  std::vector<uint64_t> out;
  const Candidate c = At(id);
  for (size_t t = 0; t < c.rows.size(); ++t) {
    for (int step : {-1, 1}) {
      Candidate n = c;
      n.rows[t] += step;
      if (n.rows[t] < 0 || n.rows[t] >= static_cast<int>(sketches_[c.sketch].tables[t].rows.size()))
        continue;
      uint64_t to = IdOf(n);
      if (Admits(to)) out.push_back(to);
    }
  }
  return out;
}

std::optional<uint64_t> Space::Nearest(const Space& other, uint64_t id) const {
  const Candidate from = other.At(id);
  const Sketch& source = other.sketches_[from.sketch];
  for (size_t s = 0; s < sketches_.size(); ++s) {
    if (sketches_[s].name != source.name || sketches_[s].tables.size() != source.tables.size())
      continue;
    Candidate to{static_cast<int>(s), {}};
    for (size_t t = 0; t < source.tables.size(); ++t) {
      const auto& wanted = source.tables[t].rows[from.rows[t]];
      double best = std::numeric_limits<double>::infinity();
      int choice = 0;
      for (size_t r = 0; r < sketches_[s].tables[t].rows.size(); ++r) {
        double distance = 0;
        for (size_t k = 0; k < wanted.size(); ++k) {
          distance +=
              std::abs(std::log2(1.0 + static_cast<double>(wanted[k])) -
                       std::log2(1.0 + static_cast<double>(sketches_[s].tables[t].rows[r][k])));
        }
        if (distance < best) best = distance, choice = static_cast<int>(r);
      }
      to.rows.push_back(choice);
    }
    uint64_t found = IdOf(to);
    if (Admits(found)) return found;
  }
  return std::nullopt;
}

}  // namespace hone::schedule
