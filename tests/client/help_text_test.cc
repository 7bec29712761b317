#include "client/help_text.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;

TEST(HelpTextTest, NamesEveryCommandAndOption) {
  const std::string overview = ProgramHelp(), page = ManPage(nullptr);
  for (const CommandSpec& command : Commands()) {
    SCOPED_TRACE(std::string(command.name));
    EXPECT_THAT(overview, HasSubstr(std::string(command.summary)));
    EXPECT_THAT(page, HasSubstr("hone " + std::string(command.name)));
    const std::string help = CommandHelp(command);
    for (const OptionSpec& option : command.options) {
      EXPECT_THAT(help, HasSubstr("--" + std::string(option.name)));
      if (!option.default_text.empty()) {
        EXPECT_THAT(help, HasSubstr(std::string(option.default_text) + ")"));
      }
    }
    EXPECT_THAT(help, HasSubstr("--help"));
    EXPECT_THAT(help, HasSubstr("--json"));
  }
}

TEST(HelpTextTest, FitsIn100Columns) {
  for (const CommandSpec& command : Commands()) {
    std::istringstream help(CommandHelp(command));
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(HelpTextTest, SaysThatOutputsAreWrittenOverWhatIsThere) {
  for (const CommandSpec& command : Commands()) {
    for (const OptionSpec& option : command.options) {
      const bool writes = option.name == "output" || option.name == "outputs";
      if (!writes || option.argument == "FOLDER") continue;
      EXPECT_THAT(std::string(option.help), HasSubstr("over what is there")) << command.name;
    }
  }
}

TEST(HelpTextTest, OptionsThatNeedAServerStandApart) {
  const std::string help = CommandHelp(*FindCommand("tune"));
  const size_t group = help.find("\nAsking a farm (with --server):\n");
  ASSERT_NE(group, std::string::npos);
  for (const char* option : {"--server", "--tls", "--insecure-loopback", "--journal", "--project",
                             "--priority", "--device-class"}) {
    EXPECT_GT(help.find(std::string("    ") + option + ' '), group) << option;
  }
  for (const char* option : {"--db", "--seconds", "--threads", "--json"}) {
    EXPECT_LT(help.find(std::string("    ") + option), group) << option;
  }
  EXPECT_THAT(ManPage(FindCommand("tune")), HasSubstr(".SS Asking a farm"));
  EXPECT_EQ(CommandHelp(*FindCommand("run")).find("Asking a farm"), std::string::npos);
}

TEST(ManPageTest, EscapesWhatRoffWouldEat) {
  const std::string page = ManPage(FindCommand("zoo"));
  EXPECT_THAT(page, HasSubstr(".TH hone\\-zoo 1"));
  EXPECT_THAT(page, HasSubstr("\\-\\-seed N"));
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('.')) {
      EXPECT_TRUE(line.starts_with(".TH") || line.starts_with(".SH") || line.starts_with(".SS") ||
                  line.starts_with(".B") || line.starts_with(".PP") || line.starts_with(".TP") ||
                  line.starts_with(".nf") || line.starts_with(".fi"))
          << line;
    }
  }
}

TEST(ManPageTest, TheOverviewListsEveryExitCode) {
  const std::string page = ManPage(nullptr);
  EXPECT_THAT(page, HasSubstr(".B 10\noutputs differ"));
  EXPECT_THAT(page, HasSubstr(".B 11\n"));
}

}  // namespace
}  // namespace hone::client
