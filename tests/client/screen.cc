#include "tests/client/screen.h"

#include <algorithm>
#include <cstdlib>

#include "gtest/gtest.h"

namespace hone::client::testing {

void Screen::NewLine() {
  column_ = 0;
  if (++row_ < rows_) return;
  row_ = rows_ - 1;
  cells_.erase(cells_.begin());
  cells_.emplace_back();
}

std::string_view Screen::Escape(std::string_view text) {
  const size_t end = text.find_first_not_of("0123456789", 2);
  if (!text.starts_with("\x1b[") || end == std::string_view::npos) {
    ADD_FAILURE() << "an escape without an end";
    return {};
  }
  const std::string number(text.substr(2, end - 2));
  if (text[end] == 'F') {
    const size_t up = number.empty() ? 1 : std::strtoul(number.c_str(), nullptr, 10);
    row_ -= std::min(row_, up);
    column_ = 0;
  } else if (text[end] == 'J' && (number.empty() || number == "0")) {
    cells_[row_].resize(std::min(cells_[row_].size(), column_));
    for (size_t r = row_ + 1; r < rows_; ++r) cells_[r].clear();
  } else {
    ADD_FAILURE() << "an escape that no table needs: " << text.substr(1, end);
  }
  return text.substr(end + 1);
}

void Screen::Write(std::string_view text) {
  while (!text.empty()) {
    if (text[0] == '\x1b') {
      text = Escape(text);
      continue;
    }
    if (text[0] == '\n') {
      NewLine();
    } else if (text[0] == '\r') {
      column_ = 0;
    }
    size_t bytes = 1;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0U) == 0x80)
      ++bytes;
    if (text[0] != '\n' && text[0] != '\r') {
      if (column_ == columns_) {
        NewLine();
        ++wrapped_;
      }
      std::vector<std::string>& row = cells_[row_];
      row.resize(std::max(row.size(), column_ + 1), " ");
      row[column_++] = text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
}

std::vector<std::string> Screen::Lines() const {
  std::vector<std::string> lines;
  for (const std::vector<std::string>& row : cells_) {
    std::string& line = lines.emplace_back();
    for (const std::string& cell : row) line += cell;
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace hone::client::testing
