#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/tuner.h"

namespace hone::search {

/// Candidates of one Sketch of a task that were refused as illegal. The Space offered them, so the
/// rule that wrote them is wrong; each cost a trial.
struct IllegalSketch {
  int task = 0;        ///< of the Tuner
  std::string sketch;  ///< its name
  int64_t count = 0;
  std::string why;  ///< of the first one
};

/// By task, then in the order of the first one's answer; those of earlier runs of a session too.
std::vector<IllegalSketch> IllegalSketches(const Tuner& tuner);

}  // namespace hone::search
