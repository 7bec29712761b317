#include "schedule/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "base/core/check.h"
#include "base/core/hash128.h"
#include "base/status.h"
#include "schedule/kind_sketches.h"
#include "schedule/lower.h"

namespace hone::schedule {

namespace {

double LogDistance(int64_t a, int64_t b) {
  return std::abs(std::log2(1.0 + static_cast<double>(a)) -
                  std::log2(1.0 + static_cast<double>(b)));
}

struct RankedRow {
  double distance = 0;
  int row = 0;
};

/// The rows of a table, nearest to `wanted` first.
std::vector<RankedRow> RowsByDistance(const DecisionTable& table,
                                      const std::vector<int64_t>& wanted) {
  std::vector<RankedRow> ranked;
  for (const auto& row : table.rows) {
    double distance = 0;
    for (size_t k = 0; k < wanted.size(); ++k) distance += LogDistance(wanted[k], row[k]);
    ranked.push_back({distance, static_cast<int>(ranked.size())});
  }
  std::ranges::stable_sort(ranked, {}, &RankedRow::distance);
  return ranked;
}

/// The first combination of a row of each table, by the sum of their distances, that is admitted;
/// best first over ranks, so that only what is nearer is looked at. Nothing where the nearest
/// kMostTried are all refused.
std::optional<std::vector<int>> FirstByDistance(
    const std::vector<std::vector<RankedRow>>& tables,
    const std::function<bool(const std::vector<int>&)>& admits) {
  constexpr int kMostTried = 4096;
  using Ranks = std::vector<size_t>;
  std::set<std::pair<double, Ranks>> open;  // also breaks ties alike everywhere
  const auto add = [&](Ranks ranks) {
    double distance = 0;
    for (size_t t = 0; t < tables.size(); ++t) {
      if (ranks[t] >= tables[t].size()) return;
      distance += tables[t][ranks[t]].distance;
    }
    open.emplace(distance, std::move(ranks));
  };
  add(Ranks(tables.size(), 0));
  for (int tried = 0; tried < kMostTried && !open.empty(); ++tried) {
    const Ranks ranks = std::move(open.extract(open.begin()).value().second);
    std::vector<int> rows;
    for (size_t t = 0; t < tables.size(); ++t) rows.push_back(tables[t][ranks[t]].row);
    if (admits(rows)) return rows;
    // Each combination is reached by one way alone: from the one whose last rank above 0 is one
    // less.
    size_t last = tables.size();
    while (last > 0 && ranks[last - 1] == 0) --last;
    for (size_t t = last == 0 ? 0 : last - 1; t < tables.size(); ++t) {
      Ranks next = ranks;
      ++next[t];
      add(std::move(next));
    }
  }
  return std::nullopt;
}

}  // namespace

Space::Space(const ir::Workload& workload, const ir::Target& target, ir::AccuracyClass accuracy)
    : Space(workload, target, SketchesOfKinds().Of(target).Sketches(workload, target, accuracy)) {}

Space::Space(const ir::Workload& workload, const ir::Target& target, std::vector<Sketch> sketches)
    : workload_(workload), target_(target), sketches_(std::move(sketches)) {
  Finish();
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
    columns_.push_back(s.Columns().size());
    HONE_CHECK(columns_.back() <= Values::kMost) << s.name;
    for (const DecisionTable& t : s.tables) {
      FlatTable flat{t.rows.size(), t.columns.size(), {}};
      for (const auto& row : t.rows) flat.values.insert(flat.values.end(), row.begin(), row.end());
      tables.push_back(std::move(flat));
    }
    flat_.push_back(std::move(tables));
  }
  FindDefault();
}

void Space::FindDefault() {
  for (size_t s = 0; s < sketches_.size(); ++s) {
    const std::optional<Values> values = sketches_[s].rule->Default(sketches_[s]);
    if (!values) continue;
    default_sketch_ = static_cast<int>(s);
    if (const auto rows = sketches_[s].RowsOf(*values))
      default_id_ = IdOf({default_sketch_, *rows});
    else
      default_values_ = values;
    return;
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

Space::Point Space::PointOf(uint64_t id) const {
  HONE_CHECK(id < product_);
  const auto sketch = static_cast<size_t>(std::upper_bound(first_id_.begin(), first_id_.end(), id) -
                                          first_id_.begin() - 1);
  uint64_t rest = id - first_id_[sketch];
  Point point{sketches_[sketch], Values::OfSize(columns_[sketch])};
  size_t column = 0;
  for (const FlatTable& t : flat_[sketch]) {
    const int64_t* row = t.values.data() + (rest % t.rows) * t.columns;
    for (size_t k = 0; k < t.columns; ++k) point.values[column++] = row[k];
    rest /= t.rows;
  }
  return point;
}

int64_t Space::ValueOf(uint64_t id, std::string_view column) const {
  const Point point = PointOf(id);
  const std::vector<std::string> columns = point.sketch.Columns();
  const auto at = std::find(columns.begin(), columns.end(), column);
  return at == columns.end() ? 0 : point.values[static_cast<size_t>(at - columns.begin())];
}

bool Space::Admits(uint64_t id) const {
  if (id == default_id_) return true;
  const Point point = PointOf(id);
  return point.sketch.rule->Refusal(point.sketch, point.values).empty();
}

uint64_t Space::admitted() const {
  uint64_t n = 0;
  for (uint64_t id = 0; id < product_; ++id) n += Admits(id);
  return n;
}

Space::Point Space::EmittedPoint(uint64_t id) const {
  if (id != default_id_ || !default_values_) return PointOf(id);
  return {sketches_[static_cast<size_t>(default_sketch_)], *default_values_};
}

std::string Space::ValuesText(uint64_t id) const {
  const Point point = EmittedPoint(id);
  std::string text = point.sketch.name;
  size_t column = 0;
  for (const std::string& name : point.sketch.Columns())
    text += fmt::format(" {}={}", name, point.values[column++]);
  return text;
}

absl::StatusOr<Trace> Space::TraceOf(uint64_t id) const {
  const Point point = EmittedPoint(id);
  TraceWriter writer(workload_);
  HONE_RETURN_IF_ERROR(point.sketch.rule->Emit(point.sketch, point.values, writer));
  return writer.trace();
}

std::optional<uint64_t> Space::Locate(const std::string& trace_text) const {
  const auto has = [&](uint64_t id) {
    const auto trace = TraceOf(id);
    return trace.ok() && ToText(*trace) == trace_text;
  };
  const auto trace = ParseTrace(trace_text);
  if (!trace.ok()) return std::nullopt;
  if (has(default_id_)) return default_id_;
  for (size_t s = 0; s < sketches_.size(); ++s) {
    const auto values = sketches_[s].rule->Read(sketches_[s], *trace);
    const auto rows = values.ok() ? sketches_[s].RowsOf(*values) : std::nullopt;
    if (!rows) continue;
    const uint64_t id = IdOf({static_cast<int>(s), *rows});
    if (Admits(id) && has(id)) return id;
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
    std::vector<std::vector<RankedRow>> tables;
    for (size_t t = 0; t < source.tables.size(); ++t)
      tables.push_back(RowsByDistance(sketches_[s].tables[t], source.tables[t].rows[from.rows[t]]));
    const auto to = FirstByDistance(tables, [&](const std::vector<int>& rows) {
      return Admits(IdOf({static_cast<int>(s), rows}));
    });
    if (to) return IdOf({static_cast<int>(s), *to});
  }
  return std::nullopt;
}

absl::StatusOr<Trace> DefaultTrace(const ir::Workload& workload, const ir::Target& target) {
  const Sketch sketch = SketchesOfKinds().Of(target).DefaultSketch(workload, target);
  TraceWriter writer(workload);
  HONE_RETURN_IF_ERROR(sketch.rule->Emit(sketch, *sketch.rule->Default(sketch), writer));
  return writer.trace();
}

}  // namespace hone::schedule
