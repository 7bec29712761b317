#pragma once

#include <algorithm>

namespace hone::runtime {

/// What something takes by itself, after one sample more (0 before the first). A thread that is
/// stopped makes single samples long, none makes them short: only many long ones make it longer.
inline float LeastTime(float known_ns, float sample_ns) {
  constexpr float kGrowth = 1.25F;
  return known_ns == 0 ? sample_ns : std::min(sample_ns, known_ns * kGrowth);
}

}  // namespace hone::runtime
