#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hone::client::testing {

/// What a terminal would show: characters (one cell each), CR, LF, and the two sequences "up N
/// lines, to their beginning" and "erase to the end" (ECMA-48: CPL, ED 0). Anything else that
/// begins with ESC fails the test. LF also returns, as a terminal's driver makes it.
class Screen {
 public:
  Screen(size_t columns, size_t rows) : columns_(columns), rows_(rows), cells_(rows) {}

  void Write(std::string_view text);

  /// Its rows from the top, without empty ones at the end.
  std::vector<std::string> Lines() const;
  /// Rows that went on from the one above because it was full.
  int wrapped() const { return wrapped_; }

 private:
  void NewLine();
  /// At an ESC; returns what comes after it.
  std::string_view Escape(std::string_view text);

  size_t columns_, rows_;
  std::vector<std::vector<std::string>> cells_;  ///< rows of characters
  size_t row_ = 0, column_ = 0;
  int wrapped_ = 0;
};

}  // namespace hone::client::testing
