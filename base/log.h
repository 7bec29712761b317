#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/core.h"

// Diagnostics for people, on stderr or in a file; never the output of a command. Thread-safe.
namespace hone {

enum class LogLevel : int { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  LogLevel level = LogLevel::kWarning;  ///< what is less grave is dropped
  std::optional<std::string> file;      ///< append here instead of stderr
  /// A daemon's log: every line is key=value ("ts=… level=info event=session_began session=…"), and
  /// a message for people is its key msg.
  bool key_value = false;
  bool plain = false;  ///< a command's: "warning: MESSAGE", without a date
};

/// Lives in main: while it exists, messages go where its options say; without one, warnings and
/// errors go to stderr unadorned. One at a time.
class LogSession {
 public:
  /// A file that cannot be opened is reported on stderr, and stderr is used.
  explicit LogSession(const LogOptions& options);
  LogSession(const LogSession&) = delete;
  LogSession& operator=(const LogSession&) = delete;
  ~LogSession();
};

void LogMessage(LogLevel level, std::string_view message);

/// From now on the LogSession drops what is less grave than this. There must be one.
void SetLogLevel(LogLevel level);

/// A fact of an event. Text with spaces, quotes, = or control characters is quoted and escaped, so
/// that no name from outside can begin a line or another key.
struct LogField {
  std::string_view key;
  std::string value;

  LogField(std::string_view name, std::string text) : key(name), value(std::move(text)) {}
  LogField(std::string_view name, std::integral auto number)
      : key(name), value(std::to_string(number)) {}
};

/// "event=lease_expired session=4f… attempt=17 why=\"it was not started in time\"". Events
/// are listed in docs/reference/metrics.md; sessions go under "session" (32 hexadecimal digits),
/// attempts under "attempt" (number within the session).
void LogEvent(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

/// The text of an event, as it stands in a line.
std::string EventText(std::string_view event, std::initializer_list<LogField> fields);

/// LogWarning("slow disk: {} ms", ms);
template <typename... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
  LogMessage(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  LogMessage(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  LogMessage(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  LogMessage(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hone
