#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "base/core/clock.h"
#include "client/live_lines.h"

namespace hone::client {

/// Shows the progress of an import that unrolls loops, once it has taken two seconds: on a terminal
/// in a line that it replaces and takes away at the end, else in a line now and then.
class ImportProgress {
 public:
  /// `is_terminal`: whether `err` is one. All outlive the object.
  ImportProgress(const MonotonicClock& clock, std::ostream& err, bool is_terminal)
      : clock_(clock), err_(err), is_terminal_(is_terminal) {}
  ~ImportProgress();
  ImportProgress(const ImportProgress&) = delete;
  ImportProgress& operator=(const ImportProgress&) = delete;

  /// `done` of `total` iterations (-1: unknown) of this loop are unrolled.
  void Show(const std::string& node, int64_t done, int64_t total);

 private:
  const MonotonicClock& clock_;
  std::ostream& err_;
  bool is_terminal_;
  LiveLines lines_;
  std::string node_;
  int64_t begin_ns_ = 0;            ///< of this loop
  std::optional<int64_t> next_ns_;  ///< when to tell again
};

}  // namespace hone::client
