#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace hone::schedule {

/// A Trace of docs/decisions/0002-traces-of-the-lowering.md with its Workload.
struct Example {
  std::string section, name, workload, trace;
};
inline void PrintTo(const Example& e, std::ostream* out) { *out << e.section << "/" << e.name; }

/// `## section`, a ```workload block, then ```trace NAME blocks.
std::vector<Example> ReadExamples();

}  // namespace hone::schedule
