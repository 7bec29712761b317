#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::schedule {

/// One primitive as written: `s7 = cache_read(s2, x0, at=s4.i1.1)`. Arguments are kept as text
/// tokens (names, integers, bracketed lists); each primitive's file gives them meaning.
struct Instruction {
  std::string result;                                      ///< new Stage's name, or empty
  std::string primitive;                                   ///< "split", "compute_at", …
  std::vector<std::string> positional;                     ///< in order
  std::vector<std::pair<std::string, std::string>> named;  ///< key=value, in order

  bool operator==(const Instruction&) const = default;
};

/// The ordered list of primitives with every decision: the one thing that search, log, wire and
/// `hone explain` share. Text: one instruction a line (or separated by `;`).
struct Trace {
  std::vector<Instruction> instructions;
  bool operator==(const Trace&) const = default;
};

std::string ToText(const Trace& trace);
std::string ToText(const Instruction& instruction);
/// Bounded (1 MiB, 4096 instructions); errors carry line and column.
absl::StatusOr<Trace> ParseTrace(std::string_view text);

}  // namespace hone::schedule
