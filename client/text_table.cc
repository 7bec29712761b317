#include "client/text_table.h"

#include <algorithm>

#include "fmt/format.h"

#include "base/core/check.h"
#include "client/live_lines.h"
#include "client/terminal_text.h"

namespace hone::client {

void TextTable::Add(std::vector<std::string> cells) {
  HONE_CHECK(cells.size() == rows_.front().size());
  for (std::string& cell : cells) cell = TerminalText(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::Text() const {
  std::vector<size_t> wide(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) wide[i] = std::max(wide[i], CellsOf(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(wide[i] - CellsOf(row[i]) + 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string AgeText(int64_t now_ms, int64_t then_ms) {
  const int64_t seconds = std::max<int64_t>((now_ms - then_ms) / 1000, 0);
  const int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  if (minutes < 2) return fmt::format("{}s", seconds);
  if (hours < 2) return fmt::format("{}m", minutes);
  if (days < 2)
    return minutes % 60 == 0 ? fmt::format("{}h", hours)
                             : fmt::format("{}h{}m", hours, minutes % 60);
  if (days < 8 && hours % 24 != 0) return fmt::format("{}d{}h", days, hours % 24);
  return fmt::format("{}d", days);
}

}  // namespace hone::client
