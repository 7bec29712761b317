#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "db/record.h"

namespace hone::server::web {

/// A cause for which candidates failed, with a few of them.
struct FailureCause {
  db::Outcome outcome = db::Outcome::kOk;
  std::string cause;  ///< first line of their messages, numbers as "#"
  int64_t count = 0;
  std::vector<db::Attempt> examples;  ///< the newest, newest first; without traces
};

/// Gathers failed attempts by cause. Bounded whatever comes: causes beyond kMostCauses count under
/// the cause "others". Not thread-safe.
class Failures {
 public:
  static constexpr size_t kMostCauses = 40, kMostExamples = 6;

  void Add(const db::Attempt& attempt);
  /// Most frequent first.
  std::vector<FailureCause> ByCount() const;

 private:
  std::map<std::pair<int, std::string>, FailureCause> causes_;
};

/// The first line of a message, at most 160 bytes, with each number (decimal or 0x…) as "#", so
/// that the same cause at other addresses is one.
std::string CauseOf(const std::string& message);

}  // namespace hone::server::web
