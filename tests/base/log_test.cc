#include "base/log.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

#include "base/file.h"

namespace hone {
namespace {

TEST(Log, DropsWhatIsBelowItsLevelAndWritesTheRestToTheFile) {
  const std::string path = ::testing::TempDir() + "/hone_log_test.txt";
  std::filesystem::remove(path);
  {
    const LogSession session({.level = LogLevel::kInfo, .file = path});
    LogDebug("too {}", "small");
    LogInfo("answer {}", 42);
    LogError("braces {{}} stay");
    LogMessage(LogLevel::kWarning, "not a {format}");
  }
  const std::string text = ReadFile(path).value();
  EXPECT_EQ(text.find("too small"), std::string::npos);
  EXPECT_NE(text.find("answer 42"), std::string::npos);
  EXPECT_NE(text.find("braces {} stay"), std::string::npos);
  EXPECT_NE(text.find("not a {format}"), std::string::npos);
}

TEST(Log, WithoutASessionOnlyWarningsReachStderr) {
  ::testing::internal::CaptureStderr();
  LogInfo("quiet");
  LogWarning("loud {}", 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "loud 1\n");
}

TEST(Log, FileThatCannotBeOpenedFallsBackToStderr) {
  ::testing::internal::CaptureStderr();
  {
    const LogSession session({.level = LogLevel::kWarning, .file = "/proc/nowhere/log.txt"});
    LogWarning("still heard");
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("/proc/nowhere/log.txt"), std::string::npos) << text;
  EXPECT_NE(text.find("still heard"), std::string::npos) << text;
}

}  // namespace
}  // namespace hone
