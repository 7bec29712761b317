#include "client/terminal_text.h"

#include "fmt/format.h"

namespace hone::client {

std::string TerminalText(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // U+0080 to U+009F, in UTF-8: control characters of eight bits.
    const bool wide = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (byte < 0x20 || byte == 0x7f || wide) {
      out += fmt::format("\\x{:02x}", wide ? next : byte);
      i += wide ? 1 : 0;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace hone::client
