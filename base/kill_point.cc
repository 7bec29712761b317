#include "base/kill_point.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <deque>

#include "fmt/format.h"

namespace hone {
namespace {

struct Point {
  std::string label;
  std::atomic<int64_t> left{0};
};

// Written by SetKillPoints before other threads run; only `left` changes afterwards.
std::deque<Point>& Points() {
  static std::deque<Point>& points = *new std::deque<Point>;
  return points;
}
std::atomic<bool> g_set{false};

bool Comes(std::string_view label) {
  if (!g_set.load(std::memory_order_relaxed)) return false;
  bool now = false;
  for (Point& point : Points()) now |= point.label == label && point.left.fetch_sub(1) == 1;
  return now;
}

}  // namespace

absl::Status SetKillPoints(const std::vector<std::string>& points,
                           std::span<const std::string_view> labels) {
  for (const std::string& text : points) {
    const size_t colon = text.rfind(':');
    const std::string label = text.substr(0, colon);
    int64_t count = 0;
    if (colon != std::string::npos) {
      const char* const end = text.data() + text.size();
      const auto parsed = std::from_chars(text.data() + colon + 1, end, count);
      if (parsed.ec != std::errc() || parsed.ptr != end) count = 0;
    }
    if (count < 1 || std::ranges::find(labels, label) == labels.end()) {
      return absl::InvalidArgumentError(
          fmt::format("--test-kill takes LABEL:N with N from 1 and LABEL of {}, not '{}'",
                      fmt::join(labels, ", "), text));
    }
    Point& point = Points().emplace_back();
    point.label = label;
    point.left.store(count);
  }
  g_set.store(!Points().empty());
  return absl::OkStatus();
}

void KillPoint(std::string_view label) {
  if (!Comes(label)) return;
  const std::string words = fmt::format("killed at {}\n", label);
  // Nothing can be done about a failing write here.
  if (::write(STDERR_FILENO, words.data(), words.size()) < 0) ::raise(SIGKILL);
  ::raise(SIGKILL);
}

bool KillChildAt(std::string_view label) { return Comes(label); }

}  // namespace hone
