#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone::client {

/// Rows of text below a header, in columns as wide as what stands in them; nothing is cut. What
/// others wrote is shown as TerminalText does. Not thread-safe.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_({std::move(header)}) {}

  /// As many cells as the header has.
  void Add(std::vector<std::string> cells);
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// How long ago, in at most two units, as kubectl writes it: "45s", "5m", "2h10m", "3d4h"; of a
/// time to come: "0s".
std::string AgeText(int64_t now_ms, int64_t then_ms);

}  // namespace hone::client
