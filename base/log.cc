#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <atomic>
#include <cstdio>
#include <memory>

#include "base/core/check.h"

namespace hone {
namespace {

// Owned by the LogSession; a plain pointer has no order of destruction to go wrong.
std::atomic<spdlog::logger*> current_logger{nullptr};
std::atomic<bool> current_key_value{false};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  HONE_UNREACHABLE();
}

spdlog::sink_ptr MakeSink(const LogOptions& options) {
  if (options.file) {
    try {
      return std::make_shared<spdlog::sinks::basic_file_sink_mt>(*options.file);
    } catch (const spdlog::spdlog_ex& error) {
      std::fprintf(stderr, "cannot log to '%s', logging to stderr instead: %s\n",
                   options.file->c_str(), error.what());
    }
  }
  return std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
}

bool IsPlain(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7f || c == '"' || c == '=' || c == '\\') return false;
  }
  return !text.empty();
}

void AppendQuoted(std::string_view text, std::string& line) {
  line += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (c == '\n') {
      line += "\\n";
    } else if (byte < ' ' || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  line += '"';
}

void AppendField(std::string_view key, std::string_view value, std::string& line) {
  if (!line.empty()) line += ' ';
  line += key;
  line += '=';
  if (IsPlain(value)) {
    line += value;
  } else {
    AppendQuoted(value, line);
  }
}

void Write(LogLevel level, std::string_view line) {
  if (spdlog::logger* logger = current_logger.load()) {
    logger->log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
  } else if (level >= LogLevel::kWarning) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  }
}

}  // namespace

LogSession::LogSession(const LogOptions& options) {
  auto logger = std::make_unique<spdlog::logger>("hone", MakeSink(options));
  logger->set_level(SpdlogLevel(options.level));
  logger->flush_on(options.key_value ? spdlog::level::info : spdlog::level::warn);
  if (options.key_value) {
    logger->set_pattern("ts=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
  }
  if (options.plain) logger->set_pattern("%l: %v");
  current_key_value.store(options.key_value);
  spdlog::logger* expected = nullptr;
  HONE_CHECK(current_logger.compare_exchange_strong(expected, logger.release()))
      << "a second LogSession";
}

LogSession::~LogSession() {
  const std::unique_ptr<spdlog::logger> logger(current_logger.exchange(nullptr));
  current_key_value.store(false);
  logger->flush();
}

void LogMessage(LogLevel level, std::string_view message) {
  if (!current_key_value.load()) return Write(level, message);
  std::string line;
  AppendField("msg", message, line);
  Write(level, line);
}

void SetLogLevel(LogLevel level) {
  spdlog::logger* const logger = current_logger.load();
  HONE_CHECK(logger != nullptr) << "no LogSession";
  logger->set_level(SpdlogLevel(level));
}

std::string EventText(std::string_view event, std::initializer_list<LogField> fields) {
  std::string line;
  AppendField("event", event, line);
  for (const LogField& field : fields) AppendField(field.key, field.value, line);
  return line;
}

void LogEvent(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  // Most events of a busy farm are below the level: their text is not made.
  const spdlog::logger* logger = current_logger.load();
  if (logger != nullptr && !logger->should_log(SpdlogLevel(level))) return;
  Write(level, EventText(event, fields));
}

}  // namespace hone
