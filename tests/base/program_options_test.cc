#include "base/program_options.h"

#include <stdlib.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::array kOptions = {
    DaemonOption("db", "here.db", "LOG", "the log", false, false, "database|tune-db"),
    DaemonOption("projects", "", "NAME=SHARE", "shares", true, true),
    DaemonOption("test-kill", "", "LABEL", "", true),
    DaemonOption("config", "", "FILE", "read options from here"),
    DaemonOption("help", "", "", "print this"),
    DaemonOption("version", "", "", "print the version"),
};

class ProgramOptionsTest : public ::testing::Test {
 protected:
  ProgramOptionsTest() {
    std::string path = (std::filesystem::temp_directory_path() / "hone-options-XXXXXX").string();
    folder_ = ::mkdtemp(path.data());
  }
  ~ProgramOptionsTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<ProgramOptions> Read(const std::string& text,
                                      std::vector<std::string> words = {}) const {
    std::ofstream(folder_ / "d.toml") << text;
    words.insert(words.end(), {"--config", (folder_ / "d.toml").string()});
    return ProgramOptions::Parse(words, kOptions, "");
  }
  std::string WhyNot(const std::string& text) const { return StatusMessage(Read(text).status()); }

  std::filesystem::path folder_;
};

TEST_F(ProgramOptionsTest, AShortHelpIsHelp) {
  const auto options = ProgramOptions::Parse({"-h"}, kOptions, "");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->Flag("help"));
}

TEST_F(ProgramOptionsTest, AFileThatIsNotThereIsAWrongConfiguration) {
  const auto options = ProgramOptions::Parse({"--config", "/no/such.toml"}, kOptions, "");
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);  // exit code 2
  EXPECT_THAT(StatusMessage(options.status()), HasSubstr("/no/such.toml"));
}

TEST_F(ProgramOptionsTest, ATableIsPairs) {
  const auto options = Read(
      "db = \"a.db\"  # ours\n"
      "\n"
      " [projects]  # shares\n"
      "vision = 2\n"
      "# none = 9\n"
      "speech=\"3\" # so\n"
      "\"a = b\" = 4\n");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->Text("db"), "a.db");
  EXPECT_THAT(options->List("projects"), ElementsAre("vision=2", "speech=3", "a = b=4"));
  // The command line says all of them, or none.
  EXPECT_THAT(Read("[projects]\nvision = 2\n", {"--projects", "x=1"})->List("projects"),
              ElementsAre("x=1"));
  EXPECT_THAT(Read("")->List("projects"), IsEmpty());
}

TEST_F(ProgramOptionsTest, WhatIsNoTableOrKeyIsRefusedWithItsLine) {
  EXPECT_THAT(WhyNot("\n[project]\nvision = 2\n"), HasSubstr("d.toml:2: unknown table [project]"));
  EXPECT_THAT(WhyNot("[test-kill]\n"), HasSubstr("unknown table [test-kill]"));
  EXPECT_THAT(WhyNot("projects = \"vision=2\"\n"), HasSubstr("unknown key 'projects'"));
  EXPECT_THAT(WhyNot("db = \"a.db\"\nbd = 1\n"), HasSubstr("d.toml:2: unknown key 'bd'"));
  for (const char* text : {"[projects\n", "[]\n", "vision\n", "\"db = 1\n", "db = \"a\n",
                           "db = \"a\" b\n", "db = a.db\n", "db = [::1]:7421\n"}) {
    EXPECT_THAT(WhyNot(text), HasSubstr("d.toml:1: this is not `option = value`")) << text;
    EXPECT_THAT(WhyNot(text), HasSubstr("text needs quotes, also an address: \"[::1]:7421\""));
  }
}

TEST_F(ProgramOptionsTest, WhatIsOfTheCommandLineIsNoKey) {
  for (const std::string key : {"help", "version", "config"}) {
    EXPECT_THAT(WhyNot(key + " = true\n"), HasSubstr("d.toml:1: unknown key '" + key + "'"));
  }
  EXPECT_TRUE(Read("", {"--help"})->Flag("help"));
}

TEST_F(ProgramOptionsTest, AFileIsToml) {
  EXPECT_EQ(Read("\ndb = 'a\\b.db'\n")->Text("db"), "a\\b.db");
  EXPECT_EQ(Read("db = \"a\\tb\" # so\n")->Text("db"), "a\tb");
  EXPECT_EQ(Read("db = \"'a'\"\n")->Text("db"), "'a'");
  EXPECT_EQ(Read("db = 1_000\n")->Text("db"), "1000");
  EXPECT_THAT(Read("test-kill = [\"a\",\n  \"[b]\"]\n")->List("test-kill"),
              ElementsAre("a", "[b]"));
  EXPECT_THAT(Read("[projects]\n'text to speech' = 3\n")->List("projects"),
              ElementsAre("text to speech=3"));
}

TEST_F(ProgramOptionsTest, AValueSuitsItsOption) {
  EXPECT_THAT(WhyNot("db = [\"a\", \"b\"]\n"), HasSubstr("d.toml:1: 'db' takes one value"));
  EXPECT_THAT(WhyNot("test-kill = { a = 1 }\n"), HasSubstr("is not a TOML string"));
  EXPECT_THAT(WhyNot("\ndb = 1979-05-27\n"), HasSubstr("d.toml:2: the value of \"db\""));
  EXPECT_THAT(
      WhyNot("test-kill = \"a\"\ntest-kill = \"b\"\n"),
      HasSubstr("d.toml:2: \"test-kill\" stands here a second time; what may be said more than "
                "once is an array"));
  EXPECT_THAT(StatusMessage(Read("", {"--db", "a", "--db", "b"}).status()),
              HasSubstr("command line: 'db' is given twice"));
  EXPECT_THAT(Read("", {"--test-kill", "a", "--test-kill=b"})->List("test-kill"),
              ElementsAre("a", "b"));
}

TEST_F(ProgramOptionsTest, WhatIsNoOptionIsSaid) {
  const auto why_not = [](const std::vector<std::string>& words) {
    return StatusMessage(ProgramOptions::Parse(words, kOptions, "").status());
  };
  EXPECT_EQ(why_not({"--colour", "red"}), "unknown option --colour; see --help");
  EXPECT_EQ(why_not({"--project=a"}),
            "unknown option --project; did you mean --projects? see --help");
  EXPECT_EQ(why_not({"--database=a"}), "unknown option --database; did you mean --db? see --help");
  EXPECT_EQ(why_not({"--test-kil=a"}), "unknown option --test-kil; see --help") << "of tests alone";
  EXPECT_EQ(why_not({"--db"}), "--db needs a value");
  const auto words = ProgramOptions::Parse({"issue", "--db=x", "server"}, kOptions, "");
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(words->words(), ElementsAre("issue", "server"));
  EXPECT_EQ(words->Text("db"), "x");
}

}  // namespace
}  // namespace hone
