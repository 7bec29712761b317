#include "measure/last_words.h"

#include <poll.h>
#include <unistd.h>

#include <array>

namespace hone::measure {

std::string ReadLastWords(int fd, size_t most_bytes) {
  std::string text;
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<size_t>(got));
    if (text.size() > most_bytes) text.erase(0, text.size() - most_bytes);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

bool StreamEnded(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & POLLHUP) != 0;
}

}  // namespace hone::measure
