#include "client/config_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "client/exit_code.h"

namespace hone::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConfigFileTest, TablesWinOverGeneralKeys) {
  const auto config = ParseConfig(
      "# mine\n"
      "threads = 3     # every command\n"
      "\n"
      "[compile]\r\n"
      "threads = 1_000\n"
      "traces = 'a\\b.onnx'\n"
      "\"json\" = true\n",
      "c.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(*config->Find("compile", "threads"), ElementsAre("1000"));
  EXPECT_THAT(*config->Find("compile", "traces"), ElementsAre("a\\b.onnx"));
  EXPECT_THAT(*config->Find("compile", "json"), ElementsAre("true"));
  EXPECT_THAT(*config->Find("other", "threads"), ElementsAre("3"));
  EXPECT_EQ(config->Find("other", "traces"), nullptr);
}

TEST(ConfigFileTest, StringsHaveEscapes) {
  const auto config = ParseConfig(R"(traces = "a \"b\"\t\\" # x)", "c.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(*config->Find("compile", "traces"), ElementsAre("a \"b\"\t\\"));
}

struct BadConfig {
  const char* text;
  const char* message;
};

class BadConfigTest : public ::testing::TestWithParam<BadConfig> {};

TEST_P(BadConfigTest, IsAUsageErrorWithItsLine) {
  const auto config = ParseConfig(GetParam().text, "c.toml");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(ExitCodeOf(config.status()), ExitCode::kUsage);
  EXPECT_THAT(StatusMessage(config.status()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadConfigTest,
    ::testing::Values(
        BadConfig{"\nsede = 1",
                  "c.toml:2: \"sede\" is not an option of any command; did you mean seed?"},
        BadConfig{"[man]\nseed = 1", "c.toml:2: \"seed\" is not an option of `hone man`"},
        BadConfig{"[zoos]", "c.toml:1: \"[zoos]\" is not a command"},
        BadConfig{"help = true", "\"help\" is not an option"},
        BadConfig{"seed", "not `option = value`"}, BadConfig{"seed = 1.5", "is not a whole number"},
        BadConfig{"seed = -1", "out of range"}, BadConfig{"json = 1", "neither true nor false"},
        BadConfig{"traces = x", "text needs quotes"},
        BadConfig{"traces = \"x", "text needs quotes"},
        BadConfig{"traces = \"x\" y", "text needs quotes"},
        BadConfig{"output = \"x\"", "c.toml:1: \"output\" names what one command writes"},
        BadConfig{"[run]\noutputs = \"x\"", "remove the line and give --outputs where"},
        BadConfig{"[zoo]\noutptu = \"x\"", "`hone zoo`; remove the line"},
        BadConfig{"seed = [1, 2]", "takes one value"},
        BadConfig{"seed = 1\nseed = 2", "c.toml:2: \"seed\" stands here a second time"}));

TEST(ConfigFileTest, AnAbsentFileIsEmpty) {
  const auto config = ReadConfig("/dev/null/config.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->general.empty());
}

}  // namespace
}  // namespace hone::client
