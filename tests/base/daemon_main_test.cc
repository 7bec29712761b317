#include "base/daemon_main.h"

#include <array>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

constexpr std::array kOptions = {
    DaemonOption("fail", "", "HOW", "how to fail"),
    DaemonOption("log-level", "info", "LEVEL", "debug, info, warning or error"),
    DaemonOption("config", "", "FILE", "read options from here"),
    DaemonOption("help", "", "", "print this"),
    DaemonOption("man", "", "", "print the manual page"),
    DaemonOption("test-hook", "", "N", ""),
    DaemonOption("version", "", "", "print the version"),
};

absl::Status Run(const ProgramOptions& options) {
  const std::string how = options.Text("fail");
  if (how == "usage") return absl::InvalidArgumentError("a bad option");
  if (how == "server") return AsServerError(absl::InvalidArgumentError("no such name"));
  return how.empty() ? absl::OkStatus() : absl::UnavailableError("no port");
}

int RunWith(std::vector<std::string> words) {
  words.insert(words.begin(), "daemond");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return RunDaemon({.name = "daemond",
                    .summary = "does-what it must",
                    .usage = "daemond [OPTION…]",
                    .options = kOptions,
                    .default_config = "",
                    .run = Run},
                   static_cast<int>(argv.size()), argv.data());
}

TEST(DaemonMainTest, EndsWith0Or2Or6Or1) {
  CaptureStderr();
  EXPECT_EQ(RunWith({}), 0);
  EXPECT_EQ(GetCapturedStderr(), "");
  for (const auto& [words, code, says] :
       {std::tuple(std::vector<std::string>{"--fail", "usage"}, 2, "a bad option"),
        std::tuple(std::vector<std::string>{"--fail", "other"}, 1, "no port"),
        std::tuple(std::vector<std::string>{"--fail", "server"}, 6, "no such name"),
        std::tuple(std::vector<std::string>{"--nosuch"}, 2, "--nosuch"),
        std::tuple(std::vector<std::string>{"--log-level", "loud"}, 2, "'loud'")}) {
    CaptureStderr();
    EXPECT_EQ(RunWith(words), code) << words[0];
    const std::string said = GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr("daemond: error: "));
    EXPECT_THAT(said, HasSubstr(says));
  }
}

TEST(DaemonMainTest, PrintsAManualPageOfItsOptions) {
  CaptureStdout();
  EXPECT_EQ(RunWith({"--man", "--fail", "usage"}), 0);
  const std::string page = GetCapturedStdout();
  EXPECT_THAT(page, ::testing::StartsWith(".TH daemond 8 "));
  EXPECT_THAT(page, HasSubstr(".SH NAME\ndaemond \\- does\\-what it must\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n.B \\-\\-log\\-level LEVEL\ndebug, info, warning or error "
                              "(default info)\n"));
  EXPECT_THAT(page, ::testing::Not(HasSubstr("hook")));
}

TEST(DaemonMainTest, AnswersHelpAndVersionWithoutRunning) {
  CaptureStdout();
  EXPECT_EQ(RunWith({"--help", "--fail", "usage"}), 0);
  EXPECT_THAT(GetCapturedStdout(), HasSubstr("how to fail"));
  CaptureStdout();
  EXPECT_EQ(RunWith({"--version", "--fail", "usage"}), 0);
  EXPECT_THAT(GetCapturedStdout(), HasSubstr("daemond "));
}

}  // namespace
}  // namespace hone
