#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone::db {

/// A Workload's canonical text with its integers taken out: two Workloads are of one form when they
/// differ in extents alone, and then a Trace of one has a meaning on the other.
struct WorkloadForm {
  std::string skeleton;      ///< every run of digits as '#'
  std::vector<double> logs;  ///< log2 of those runs, in order; -1 for zero

  bool operator==(const WorkloadForm&) const = default;
};

WorkloadForm FormOf(std::string_view workload_text);

/// Sum of the differences of logs; 0 for equal texts, 1 for one extent doubled. nullopt
/// when the forms differ.
std::optional<double> WorkloadDistance(const WorkloadForm& a, const WorkloadForm& b);

}  // namespace hone::db
