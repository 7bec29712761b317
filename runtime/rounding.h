#pragma once

#include <xmmintrin.h>

namespace hone::runtime {

/// While it lives, the thread rounds to nearest, keeps denormals and traps nothing, whatever was
/// set before, so results do not depend on the caller or on which thread computes; then as before.
class DefaultRounding {
 public:
  DefaultRounding() : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  DefaultRounding(const DefaultRounding&) = delete;
  DefaultRounding& operator=(const DefaultRounding&) = delete;
  ~DefaultRounding() { _mm_setcsr(saved_); }

 private:
  static constexpr unsigned kDefault = 0x1f80;
  unsigned saved_;
};

}  // namespace hone::runtime
