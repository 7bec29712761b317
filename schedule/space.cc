#include "schedule/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

#include "base/core/check.h"
#include "base/core/hash128.h"
#include "base/status.h"
#include "schedule/sketches/attention.h"
#include "schedule/structure.h"

namespace hone::schedule {

namespace {

constexpr int64_t kMostRows = 16;
constexpr int64_t kMostVectors = 6;
/// Unrolled multiply-adds of one tile and its siblings above which code generation costs more than
/// a candidate is worth.
constexpr int64_t kMostSteps = 700;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

constexpr std::array<std::string_view, 9> kColumns = {
    "rows",   "vectors",    "order",    "reduce_block", "tile_rows", "partial_vectors",
    "unroll", "query_rows", "key_block"};

/// The place of a column's name in kColumns.
uint8_t ColumnOf(const std::string& name) {
  const auto* it = std::find(kColumns.begin(), kColumns.end(), name);
  HONE_CHECK(it != kColumns.end());
  return static_cast<uint8_t>(it - kColumns.begin());
}

void Apply(uint8_t column, int64_t value, PlanChoice* c) {
  switch (column) {
    case 0: c->tile.rows = value; break;
    case 1: c->tile.vectors = value; break;
    case 2: c->tile.order = static_cast<TileChoice::Order>(value); break;
    case 3: c->tile.reduce_block = value; break;
    case 4: c->tile_rows = value; break;
    case 5: c->partial_vectors = value; break;
    case 6: c->unroll = value; break;
    case 7: c->query_rows = value; break;
    case 8: c->key_block = value; break;
    default: HONE_CHECK(false);
  }
}

double LogDistance(int64_t a, int64_t b) {
  return std::abs(std::log2(1.0 + static_cast<double>(a)) -
                  std::log2(1.0 + static_cast<double>(b)));
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

/// Vector registers that one step of a product's tile holds: its sums, a panel's vectors and a
/// broadcast. With one row a panel's vector has one reader, which takes it from memory; so has a
/// broadcast with one vector, where multiply-adds take broadcasts from memory.
int64_t LiveVectors(int64_t rows, int64_t vectors, const ir::Target& target) {
  if (rows == 1) return vectors + 1;
  if (vectors == 1 && target.isa == ir::Isa::kAvx512) return rows + 1;
  return rows * vectors + vectors + 1;
}

/// Lines that one set of the first cache holds, and the bytes after which sets repeat.
constexpr int64_t kL1Ways = 8;

/// Rows of the tile beyond which what they read of the broadcast operand shares a set: a line is
/// gone before its next element is wanted.
int64_t RowsWithinASet(const ir::Workload& w, const TileForm& form, const ir::Target& target) {
  const ir::Stage& stage = w.stages[form.anchor];
  const int64_t span = target.l1_bytes / kL1Ways;
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

DecisionTable TileTable(int64_t rows_total, const TileForm& form, const ir::Target& target,
                        bool contraction) {
  DecisionTable t{"tile", {"rows", "vectors"}, {}};
  for (int64_t h : Heights(rows_total)) {
    const int64_t most_vectors = rows_total == 1 ? 2 * kMostVectors : kMostVectors;
    for (int64_t v = 1; v <= std::min(most_vectors, form.vectors_total); ++v) {
      if (v > 1 && !form.FitsBlock(v)) continue;
      if (contraction && LiveVectors(h, v, target) > target.registers) continue;
      if (!contraction && h * v * form.registers > target.registers) continue;
      t.rows.push_back({h, v});
    }
  }
  if (t.rows.empty()) t.rows.push_back({1, 1});
  return t;
}

/// Vectors of partial results, and of the maps in the row: equal ones make one loop of a map and
/// its reduction.
DecisionTable RowTable(const PlanForm& form) {
  DecisionTable t{"row", {"partial_vectors", "unroll"}, {}};
  for (int64_t partial : {1, 2, 4, 8}) {
    for (int64_t maps : {1, 2, 4, 8}) {
      const bool fits = form.row_length >= partial * form.lanes;
      if (partial == 4 || (fits && (maps == partial || maps == 4)))
        t.rows.push_back({partial, maps});
    }
  }
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
      Apply(ColumnOf(tables[t].columns[k]), tables[t].rows[rows[t]][k], &c);
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
    case PlanForm::Kind::kRows: {
      // Always there, so that Workloads whose rows fit other numbers are neighbours.
      DecisionTable together{"together", {"rows"}, {}};
      for (const int64_t n : form_.rows_at_a_time) together.rows.push_back({n});
      Sketch rows{"rows", {}, {RowTable(form_), std::move(together)}};
      sketches_.push_back(std::move(rows));
      break;
    }
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
  for (Sketch& s : AttentionSketches(workload, target)) sketches_.push_back(std::move(s));
  Finish();
}

Space::Space(const ir::Workload& workload, const ir::Target& target, std::vector<Sketch> sketches)
    : workload_(workload),
      target_(target),
      form_(FindPlanForm(workload, target)),
      sketches_(std::move(sketches)) {
  Finish();
}

void Space::AddTileSketches(ir::AccuracyClass accuracy) {
  const bool own = form_.tile.owner == form_.tile.anchor;
  const bool contraction =
      !form_.tile.packed.empty() ||
      RoleOf(workload_, workload_.stages[form_.tile.anchor]) == Role::kContraction;
  if (contraction && form_.tile.row_axis >= 0)
    most_rows_ = RowsWithinASet(workload_, form_.tile, target_);
  DecisionTable tile = TileTable(form_.tile.rows_total, form_.tile, target_, contraction);
  DecisionTable order{"order", {"order"}, {{0}, {1}}};
  std::vector<std::pair<std::string, Padding>> forms = {{"direct", Padding::kPeeled}};
  if (form_.prepared) {
    forms = {{"direct/peeled", Padding::kPeeled},
             {"direct/guard", Padding::kGuard},
             {"direct/tile", Padding::kTile},
             {"direct/root", Padding::kRoot}};
    // In the loops of the heaviest cluster only what that cluster reads can be computed.
    if (!form_.own_input) forms.erase(forms.begin() + 2);
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
  const auto product = [&](int64_t rows) {
    DecisionTable tile = TileTable(rows, form_.tile, target_, true);
    std::erase_if(tile.rows, [](const auto& r) { return r[0] * r[1] < 8; });
    return tile;
  };
  Sketch three;
  three.name = fmt::format("winograd{}/three_phases", m);
  three.base.winograd = m;
  three.tables = {product(stage.spatial[0] * tiles)};
  if (three.tables[0].rows.empty()) return;
  Sketch one;
  one.name = fmt::format("winograd{}/one_phase", m);
  one.base = three.base;
  one.base.one_phase = true;
  one.tables = {product(tiles)};
  DecisionTable blocks{"block", {"tile_rows"}, {}};
  for (int64_t b : {1, 2, 3, 4, 7}) {
    if (b <= tile_rows) blocks.rows.push_back({b});
  }
  one.tables.push_back(blocks);
  sketches_.push_back(std::move(three));
  if (!one.tables[0].rows.empty()) sketches_.push_back(std::move(one));
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
  for (const Sketch& s : sketches_) {
    std::vector<FlatTable> tables;
    for (const DecisionTable& t : s.tables) {
      FlatTable flat{t.rows.size(), {}, {}};
      for (const std::string& column : t.columns) flat.columns.push_back(ColumnOf(column));
      for (const auto& row : t.rows) flat.values.insert(flat.values.end(), row.begin(), row.end());
      tables.push_back(std::move(flat));
    }
    flat_.push_back(std::move(tables));
  }
  FindDefault();
}

void Space::FindDefault() {
  const PlanChoice nominal = NominalChoice(form_);
  const auto same = [&](const PlanChoice& c) {
    return c.winograd == nominal.winograd && c.padding == nominal.padding &&
           c.tile.rows == nominal.tile.rows && c.tile.vectors == nominal.tile.vectors &&
           c.tile.order == nominal.tile.order && c.tile.reduce_block == 0 &&
           c.partial_vectors == nominal.partial_vectors && c.unroll == nominal.unroll &&
           c.query_rows == nominal.query_rows && c.key_block == nominal.key_block;
  };
  for (size_t s = 0; s < sketches_.size(); ++s) {
    // Tables set different values, so each can be looked through on its own.
    PlanChoice wanted = nominal;
    wanted.tile.reduce_block = 0;
    Candidate c{static_cast<int>(s), {}};
    for (const FlatTable& t : flat_[s]) {
      const size_t width = t.columns.size();
      size_t row = 0;
      for (size_t r = 0; r < t.rows; ++r) {
        PlanChoice with = wanted;
        for (size_t k = 0; k < width; ++k) Apply(t.columns[k], t.values[r * width + k], &with);
        if (same(with)) {
          row = r;
          break;
        }
      }
      c.rows.push_back(static_cast<int>(row));
    }
    if (same(sketches_[s].Fill(c.rows))) {
      default_id_ = IdOf(c);
      return;
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
  HONE_CHECK(id < product_);
  const auto sketch = static_cast<size_t>(std::upper_bound(first_id_.begin(), first_id_.end(), id) -
                                          first_id_.begin() - 1);
  uint64_t rest = id - first_id_[sketch];
  PlanChoice c = sketches_[sketch].base;
  for (const FlatTable& t : flat_[sketch]) {
    const size_t width = t.columns.size();
    const int64_t* row = t.values.data() + (rest % t.rows) * width;
    for (size_t k = 0; k < width; ++k) Apply(t.columns[k], row[k], &c);
    rest /= t.rows;
  }
  return c;
}

bool Space::Admits(uint64_t id) const {
  if (id == default_id_) return true;
  const PlanChoice c = ChoiceOf(id);
  if (form_.kind != PlanForm::Kind::kTile || c.query_rows > 0) return true;
  const ir::Stage& anchor = workload_.stages[form_.tile.anchor];
  int64_t taps = 1;
  for (int r : form_.tile.unrolled) taps *= anchor.Extent(r);
  if (c.winograd == 0) {
    if (c.tile.rows > most_rows_) return false;
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
  if (product_ > kMostLocated) return std::nullopt;
  for (uint64_t id = 0; id < product_; ++id) {
    if (!Admits(id)) continue;
    auto t = TraceOf(id);
    if (t.ok() && ToText(*t) == trace_text) return id;
  }
  return std::nullopt;
}

std::vector<int> Space::StepsOf(int sketch, int table, int row) const {
  const auto& rows = sketches_[sketch].tables[table].rows;
  const std::vector<int64_t>& from = rows[row];
  std::vector<int> out;
  const auto add = [&](int r) {
    if (r >= 0 && r < static_cast<int>(rows.size()) && r != row &&
        std::find(out.begin(), out.end(), r) == out.end())
      out.push_back(r);
  };
  if (from.size() < 2) {
    add(row - 1);
    add(row + 1);
    return out;
  }
  for (size_t k = 0; k < from.size(); ++k) {
    int nearest[2] = {-1, -1};  // with a smaller value in column k, with a larger one
    double least[2] = {0, 0};
    for (size_t r = 0; r < rows.size(); ++r) {
      if (rows[r][k] == from[k]) continue;
      const int side = rows[r][k] > from[k];
      double distance = LogDistance(rows[r][k], from[k]);
      for (size_t other = 0; other < from.size(); ++other)
        distance += other == k ? 0 : 8 * LogDistance(rows[r][other], from[other]);
      if (nearest[side] < 0 || distance < least[side])
        least[side] = distance, nearest[side] = static_cast<int>(r);
    }
    add(nearest[0]);
    add(nearest[1]);
  }
  return out;
}

std::vector<uint64_t> Space::Neighbours(uint64_t id) const {
  std::vector<uint64_t> out;
  const Candidate c = At(id);
  for (size_t t = 0; t < c.rows.size(); ++t) {
    for (const int row : StepsOf(c.sketch, static_cast<int>(t), c.rows[t])) {
      Candidate n = c;
      n.rows[t] = row;
      const uint64_t to = IdOf(n);
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
          distance += LogDistance(wanted[k], sketches_[s].tables[t].rows[r][k]);
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
