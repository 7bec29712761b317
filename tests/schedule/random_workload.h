#pragma once

#include <string>

#include "base/core/random.h"

namespace hone::schedule {

/// A small Workload in text form, of one of the families the lowering must carry.
struct RandomWorkload {
  std::string family;
  std::string dtype;  ///< of most of its values, where the family draws one; else f32
  std::string text;
};

/// `family` empty: any.
RandomWorkload MakeWorkload(Random& random, const std::string& family = "");

}  // namespace hone::schedule
