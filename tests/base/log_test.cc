#include "base/log.h"

#include <filesystem>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
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

TEST(Log, ACommandsLinesHaveNoDateAndMayBeQuietened) {
  const std::string path = ::testing::TempDir() + "/hone_log_plain_test.txt";
  std::filesystem::remove(path);
  {
    const LogSession session({.file = path, .plain = true});
    LogWarning("the declaration is ignored");
    SetLogLevel(LogLevel::kError);
    LogWarning("nobody reads this");
    LogError("this one is read");
  }
  EXPECT_EQ(ReadFile(path).value(),
            "warning: the declaration is ignored\nerror: this one is read\n");
}

TEST(Log, ADaemonsLinesAreKeysAndValues) {
  const std::string path = ::testing::TempDir() + "/hone_log_key_value_test.txt";
  std::filesystem::remove(path);
  {
    const LogSession session({.level = LogLevel::kInfo, .file = path, .key_value = true});
    LogEvent(LogLevel::kInfo, "lease_expired", {{"session", "4f"}, {"attempt", 17}});
    LogEvent(LogLevel::kDebug, "too_small", {});
    LogInfo("for {}", "people");
  }
  std::istringstream lines(ReadFile(path).value());
  std::string first, second, third;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_FALSE(std::getline(lines, third)) << third;
  EXPECT_THAT(first, ::testing::MatchesRegex("ts=20[0-9-]+T[0-9:.]+Z level=info "
                                             "event=lease_expired session=4f attempt=17"));
  EXPECT_THAT(second, ::testing::EndsWith(R"(level=info msg="for people")"));
}

TEST(Log, NoTextFromOutsideBeginsALineOrAKey) {
  EXPECT_EQ(EventText("worker_came", {{"worker", "a b"}, {"why", ""}, {"n", int64_t{-1}}}),
            R"(event=worker_came worker="a b" why="" n=-1)");
  EXPECT_EQ(EventText("e", {{"worker", "x\nts=1 level=error \"\\\x1b[0m=\x7f"}}),
            R"(event=e worker="x\nts=1 level=error \"\\\x1b[0m=\x7f")");
  EXPECT_EQ(EventText("e", {{"name", "größer"}}), "event=e name=größer");
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
