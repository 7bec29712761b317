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

}  // namespace

LogSession::LogSession(const LogOptions& options) {
  auto logger = std::make_unique<spdlog::logger>("hone", MakeSink(options));
  logger->set_level(SpdlogLevel(options.level));
  logger->flush_on(spdlog::level::warn);
  spdlog::logger* expected = nullptr;
  HONE_CHECK(current_logger.compare_exchange_strong(expected, logger.release()))
      << "a second LogSession";
}

LogSession::~LogSession() {
  const std::unique_ptr<spdlog::logger> logger(current_logger.exchange(nullptr));
  logger->flush();
}

void LogMessage(LogLevel level, std::string_view message) {
  if (spdlog::logger* logger = current_logger.load()) {
    logger->log(SpdlogLevel(level), spdlog::string_view_t(message.data(), message.size()));
  } else if (level >= LogLevel::kWarning) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
  }
}

}  // namespace hone
