#include "schedule/sketch.h"

namespace hone::schedule {

uint64_t Sketch::Product() const {
  uint64_t n = 1;
  for (const auto& t : tables) n *= t.rows.size();
  return n;
}

std::vector<std::string> Sketch::Columns() const {
  std::vector<std::string> all;
  for (const auto& t : tables) all.insert(all.end(), t.columns.begin(), t.columns.end());
  return all;
}

std::optional<std::vector<int>> Sketch::RowsOf(const Values& values) const {
  std::vector<int> out;
  size_t column = 0;
  for (const auto& t : tables) {
    const auto equals = [&](const std::vector<int64_t>& row) {
      for (size_t k = 0; k < row.size(); ++k) {
        if (row[k] != values[column + k]) return false;
      }
      return true;
    };
    size_t row = 0;
    while (row < t.rows.size() && !equals(t.rows[row])) ++row;
    if (row == t.rows.size()) return std::nullopt;
    out.push_back(static_cast<int>(row));
    column += t.columns.size();
  }
  return out;
}

std::string_view SketchRule::Refusal(const Sketch&, const Values&) const { return {}; }

std::optional<Values> SketchRule::Default(const Sketch&) const { return std::nullopt; }

}  // namespace hone::schedule
