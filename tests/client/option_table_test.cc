#include "client/option_table.h"

#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "client/command.h"

namespace hone::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(OptionTableTest, IsConsistent) {
  std::set<std::string_view> commands;
  for (const CommandSpec& command : Commands()) {
    SCOPED_TRACE(std::string(command.name));
    EXPECT_TRUE(commands.insert(command.name).second);
    EXPECT_NE(FindCommandFunction(command.name), nullptr);
    EXPECT_FALSE(command.summary.empty());
    EXPECT_FALSE(command.summary.ends_with('.'));
    EXPECT_FALSE(command.description.empty());
    EXPECT_THAT(std::string(command.example), HasSubstr("hone " + std::string(command.name)));
    // Typed one after another they read and write the same log.
    EXPECT_THAT(std::string(command.example), Not(HasSubstr("tune.db")));
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const std::span<const OptionSpec> options : {command.options, CommonOptions()}) {
      for (const OptionSpec& option : options) {
        SCOPED_TRACE(std::string(option.name));
        EXPECT_TRUE(names.insert(option.name).second);
        const bool fresh = option.letter == '\0' || letters.insert(option.letter).second;
        EXPECT_TRUE(fresh);
        EXPECT_FALSE(option.help.empty());
        EXPECT_FALSE(option.help.ends_with('.'));
        EXPECT_EQ(option.argument.empty(), option.kind == ValueKind::kFlag);
        EXPECT_EQ(option.choices.empty(), option.kind != ValueKind::kChoice);
        if (!option.default_text.empty()) {
          EXPECT_TRUE(CheckValue(option, std::string(option.default_text)).ok());
        }
      }
    }
  }
}

TEST(OptionTableTest, OneNameMeansOneKindEverywhere) {
  std::map<std::string_view, ValueKind> kinds;
  for (const CommandSpec& command : Commands()) {
    for (const OptionSpec& option : command.options) {
      // A choice is a text whose values are known.
      const ValueKind kind = option.kind == ValueKind::kChoice ? ValueKind::kText : option.kind;
      const auto [it, fresh] = kinds.emplace(option.name, kind);
      EXPECT_TRUE(fresh || it->second == kind) << option.name;
    }
  }
}

TEST(OptionTableTest, ChecksValues) {
  const OptionSpec integer = {.name = "n", .kind = ValueKind::kInteger, .low = 1, .high = 8};
  EXPECT_TRUE(CheckValue(integer, "8").ok());
  for (const char* bad : {"0", "9", "", "1x", " 1", "1.0", "99999999999999999999"}) {
    EXPECT_EQ(CheckValue(integer, bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_THAT(StatusMessage(CheckValue(integer, "9")), HasSubstr("from 1 to 8"));
  const OptionSpec number = {.name = "x", .kind = ValueKind::kNumber, .low = 0};
  EXPECT_TRUE(CheckValue(number, "1e-3").ok());
  for (const char* bad : {"-1", "nan", "x", ""}) {
    EXPECT_EQ(CheckValue(number, bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  const OptionSpec choice = {.name = "c", .kind = ValueKind::kChoice, .choices = "a|b"};
  EXPECT_TRUE(CheckValue(choice, "b").ok());
  EXPECT_THAT(StatusMessage(CheckValue(choice, "")), HasSubstr("a, b"));
}

TEST(OptionTableTest, ADurationIsSecondsOrNumbersWithUnits) {
  EXPECT_EQ(ParseSeconds("90"), 90);
  EXPECT_EQ(ParseSeconds("1e-3"), 1e-3);
  EXPECT_EQ(ParseSeconds("250ms"), 0.25);
  EXPECT_EQ(ParseSeconds("1m"), 60);
  EXPECT_EQ(ParseSeconds("1.5min"), 90);
  EXPECT_EQ(ParseSeconds("2h"), 7200);
  EXPECT_EQ(ParseSeconds("1d2h30m5s"), 95405);
  for (const char* bad : {"", "m", "1x", "1m30", "30s1m", "1m1m", "1 m", "1m-1s", "nan s"}) {
    EXPECT_EQ(ParseSeconds(bad), std::nullopt) << bad;
  }
  const OptionSpec time = {.name = "t", .kind = ValueKind::kDuration, .low = 1, .high = 3600};
  EXPECT_TRUE(CheckValue(time, "1h").ok());
  for (const char* bad : {"2h", "1ms", "-5", "nan", "soon"}) {
    EXPECT_EQ(CheckValue(time, bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_THAT(StatusMessage(CheckValue(time, "soon")), HasSubstr("2h30m"));
}

TEST(OptionTableTest, FindsTheNearestWord) {
  const std::vector<Suggestion> words = {{"bench", "time"}, {"check", ""}, {"zoo", ""}};
  EXPECT_EQ(Nearest("benhc", words), "bench");
  EXPECT_EQ(Nearest("chek", words), "check");
  EXPECT_EQ(Nearest("-benchmark", words), "bench");
  EXPECT_EQ(Nearest("time", words), "bench");
  for (const char* far : {"xyz", "", "-", "--"}) EXPECT_EQ(Nearest(far, words), "") << far;
  const std::vector<Suggestion> options = {
      {"seed", ""}, {"seconds", "duration"}, {"outputs", ""}, {"output", ""}, {"threads", "jobs"}};
  for (const auto& [typed, meant] : std::map<std::string, std::string>{{"--secs", "seconds"},
                                                                       {"--sec", "seconds"},
                                                                       {"-seconds", "seconds"},
                                                                       {"--sede", "seed"},
                                                                       {"--sd", "seed"},
                                                                       {"--duration", "seconds"},
                                                                       {"--out", "output"},
                                                                       {"--outptus", "outputs"},
                                                                       {"--jobs", "threads"},
                                                                       {"--thrds", "threads"}}) {
    EXPECT_EQ(Nearest(typed, options), meant) << typed;
  }
  EXPECT_THAT(SplitChoices("a|bc|d"), ElementsAre("a", "bc", "d"));
}

}  // namespace
}  // namespace hone::client
