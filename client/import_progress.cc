#include "client/import_progress.h"

#include <algorithm>

#include "fmt/format.h"

namespace hone::client {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

}  // namespace

ImportProgress::~ImportProgress() { err_ << lines_.Erase() << std::flush; }

void ImportProgress::Show(const std::string& node, int64_t done, int64_t total) {
  const int64_t now_ns = clock_.NowNs();
  if (!next_ns_) next_ns_ = now_ns + 2 * kSecondNs;
  if (node != node_ || done == 0) {
    node_ = node;
    begin_ns_ = now_ns;
  }
  if (done == 0 || now_ns < *next_ns_) return;
  std::string line = fmt::format("unrolling loop {}: {}", node, done);
  if (total >= done) {
    const double left_ns = static_cast<double>(now_ns - begin_ns_) / static_cast<double>(done) *
                           static_cast<double>(total - done);
    line += fmt::format(" of {} iterations, at most {:.0f} s left", total,
                        std::max(1.0, left_ns / kSecondNs));
  } else {
    line += " iterations so far";
  }
  err_ << (is_terminal_ ? lines_.Frame({line}, ErrorScreen()) : line + "\n") << std::flush;
  next_ns_ = now_ns + (is_terminal_ ? kSecondNs / 5 : 10 * kSecondNs);
}

}  // namespace hone::client
