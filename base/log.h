#pragma once

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
