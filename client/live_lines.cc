#include "client/live_lines.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "fmt/format.h"

namespace hone::client {
namespace {

constexpr std::string_view kCut = "…";  // one cell

/// One character at the front of a text.
struct Character {
  size_t bytes = 1;
  size_t cells = 1;
  bool shown = false;  ///< may be written to a terminal as it is
};

Character FirstOf(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {.shown = lead >= 0x20 && lead != 0x7f};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  if (bytes == 1 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t code = lead & (0xffU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80) return {};
    code = code << 6U | (next & 0x3fU);
  }
  constexpr uint32_t kFirstPrintable = 0xa0, kFirstWide = 0x1100;
  constexpr uint32_t kFirstPunctuation = 0x2000, kFirstCjk = 0x2e80;
  const bool wide = code >= kFirstWide && !(code >= kFirstPunctuation && code < kFirstCjk);
  return {bytes, wide ? size_t{2} : size_t{1}, code >= kFirstPrintable};
}

ScreenSize ScreenOf(int descriptor) {
  winsize size = {};
  ScreenSize screen;
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return screen;
  if (size.ws_col > 0) screen.columns = size.ws_col;
  if (size.ws_row > 0) screen.rows = size.ws_row;
  return screen;
}

}  // namespace

ScreenSize ErrorScreen() { return ScreenOf(STDERR_FILENO); }

size_t LineCellsOf(int descriptor) {
  return ::isatty(descriptor) == 1 ? ScreenOf(descriptor).LineCells() : SIZE_MAX;
}

size_t CellsOf(std::string_view text) {
  size_t cells = 0;
  while (!text.empty()) {
    const Character c = FirstOf(text);
    cells += c.cells;
    text.remove_prefix(c.bytes);
  }
  return cells;
}

std::string CutToCells(std::string_view text, size_t cells) {
  std::string out;
  size_t used = 0;
  size_t whole = 0;  // bytes of `out` that leave a cell for the mark
  while (!text.empty()) {
    const Character c = FirstOf(text);
    if (used + c.cells > cells) {
      out.resize(whole);
      return cells > 0 ? out.append(kCut) : out;
    }
    out += c.shown ? text.substr(0, c.bytes) : std::string_view("?");
    used += c.cells;
    if (used < cells) whole = out.size();
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string CutToWords(std::string_view text, size_t cells) {
  constexpr size_t kMark = 2;  // a space and "…"
  if (CellsOf(text) <= cells) return CutToCells(text, cells);
  size_t whole = 0;
  for (size_t at = text.find(' ');
       at != std::string_view::npos && CellsOf(text.substr(0, at)) + kMark <= cells;
       at = text.find(' ', at + 1)) {
    whole = at;
  }
  if (whole == 0) return CutToCells(text, cells);
  return CutToCells(text.substr(0, whole), cells).append(" ").append(kCut);
}

std::vector<std::string> PackIntoLines(const std::vector<std::string>& parts,
                                       std::string_view separator, size_t cells) {
  std::vector<std::string> lines;
  for (const std::string& part : parts) {
    if (!lines.empty() && CellsOf(lines.back()) + separator.size() + CellsOf(part) <= cells) {
      lines.back().append(separator).append(part);
    } else {
      lines.push_back(part);
    }
  }
  return lines;
}

std::string LiveLines::Erase() {
  const std::string text = shown_ > 0 ? fmt::format("\x1b[{}F\x1b[J", shown_) : std::string();
  shown_ = 0;
  return text;
}

std::string LiveLines::Frame(const std::vector<std::string>& lines, const ScreenSize& screen) {
  std::string text = Erase();
  // The cursor stands below them, in a row of its own.
  shown_ = std::min(lines.size(), std::max<size_t>(screen.rows, 2) - 1);
  for (size_t i = lines.size() - shown_; i < lines.size(); ++i) {
    text += CutToCells(lines[i], screen.LineCells()) + "\n";
  }
  return text;
}

}  // namespace hone::client
