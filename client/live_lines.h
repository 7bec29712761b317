#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hone::client {

/// A terminal's character cells.
struct ScreenSize {
  size_t columns = 80, rows = 24;
  /// Cells of a line: some terminals wrap when the last column is filled.
  size_t LineCells() const { return columns > 2 ? columns - 1 : 1; }
};

/// That of standard error, as it is now; 80 by 24 where it does not tell (or was closed).
ScreenSize ErrorScreen();
/// Cells of a line on a file descriptor: SIZE_MAX where it is no terminal.
size_t LineCellsOf(int descriptor);

/// `text` without what is beyond so many cells, between characters of its UTF-8; an end cut off is
/// shown as "…". What would move the cursor, or is no UTF-8, becomes "?". Characters that may be
/// wide (from U+1100 on) count as two cells.
std::string CutToCells(std::string_view text, size_t cells);
/// Cells that `text` takes, counted the same way.
size_t CellsOf(std::string_view text);
/// The same, but what is cut off begins with a whole word ("conv 3x3 + add …"), unless the first
/// word has no room.
std::string CutToWords(std::string_view text, size_t cells);

/// `parts` in as few lines as their order allows, none wider than `cells` unless one part is: what
/// does not fit beside the others begins a line, so that nothing is lost on a narrow terminal.
std::vector<std::string> PackIntoLines(const std::vector<std::string>& parts,
                                       std::string_view separator, size_t cells);

/// Lines that are written over each other, frame by frame. Each takes one row of the terminal,
/// because moving up over one that was wrapped would leave its rest behind.
class LiveLines {
 public:
  /// What to write to replace the last frame by these; of more than the screen has, the last ones.
  std::string Frame(const std::vector<std::string>& lines, const ScreenSize& screen);
  /// What to write to take the last frame away.
  std::string Erase();

 private:
  size_t shown_ = 0;
};

}  // namespace hone::client
