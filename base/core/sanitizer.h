#pragma once

namespace hone {

/// Whether this build is checked by a sanitizer, which reserves terabytes of address space and
/// makes system calls of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace hone
