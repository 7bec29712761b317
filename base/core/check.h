#pragma once

#include <sstream>

// Programmer errors end the program, in every build type. Operating errors (files, peers, bad
// input) are a Status instead.
namespace hone {

/// Collects the message of a failed check; its destructor prints
/// `file:line: check failed: CONDITION: message` to stderr and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure();

  std::ostream& stream() { return message_; }

 private:
  const char* file_;
  int line_;
  const char* condition_;
  std::ostringstream message_;
};

/// Makes the stream of a check a void expression; `&` binds weaker than `<<` and stronger than
/// `?:`.
struct CheckVoidify {
  void operator&(const std::ostream&) const {}
};

}  // namespace hone

/// HONE_CHECK(index < size) << "index " << index; evaluates the message only on failure.
#define HONE_CHECK(condition) \
  (condition)                 \
      ? static_cast<void>(0)  \
      : ::hone::CheckVoidify() & ::hone::CheckFailure(__FILE__, __LINE__, #condition).stream()

/// A place that no input can reach; usable at the end of a switch over an enum.
#define HONE_UNREACHABLE() \
  ::hone::CheckVoidify() & ::hone::CheckFailure(__FILE__, __LINE__, "unreachable").stream()

/// As HONE_CHECK, but only in debug builds: for hot loops.
#ifdef NDEBUG
#define HONE_DCHECK(condition) HONE_CHECK(true || (condition))
#else
#define HONE_DCHECK(condition) HONE_CHECK(condition)
#endif
