#include "base/daemon_options.h"

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
    DaemonOption{"db", "here.db", "LOG", "the log"},
    DaemonOption{"projects", "", "NAME=SHARE", "shares", true, true},
    DaemonOption{"test-kill", "", "LABEL", "", true},
    DaemonOption{"config", "", "FILE", "read options from here"},
    DaemonOption{"help", "", "", "print this"},
    DaemonOption{"version", "", "", "print the version"},
};

class DaemonOptionsTest : public ::testing::Test {
 protected:
  DaemonOptionsTest() {
    std::string path = (std::filesystem::temp_directory_path() / "hone-options-XXXXXX").string();
    folder_ = ::mkdtemp(path.data());
  }
  ~DaemonOptionsTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<DaemonOptions> Read(const std::string& text,
                                     std::vector<std::string> words = {}) const {
    std::ofstream(folder_ / "d.toml") << text;
    words.insert(words.end(), {"--config", (folder_ / "d.toml").string()});
    return DaemonOptions::Parse(words, kOptions, "");
  }
  std::string WhyNot(const std::string& text) const { return StatusMessage(Read(text).status()); }

  std::filesystem::path folder_;
};

TEST_F(DaemonOptionsTest, AShortHelpIsHelp) {
  const auto options = DaemonOptions::Parse({"-h"}, kOptions, "");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->Flag("help"));
}

TEST_F(DaemonOptionsTest, AFileThatIsNotThereIsAWrongConfiguration) {
  const auto options = DaemonOptions::Parse({"--config", "/no/such.toml"}, kOptions, "");
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);  // exit code 2
  EXPECT_THAT(StatusMessage(options.status()), HasSubstr("/no/such.toml"));
}

TEST_F(DaemonOptionsTest, ATableIsPairs) {
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

TEST_F(DaemonOptionsTest, WhatIsNoTableOrKeyIsRefusedWithItsLine) {
  EXPECT_THAT(WhyNot("\n[project]\nvision = 2\n"), HasSubstr("d.toml:2: unknown table [project]"));
  EXPECT_THAT(WhyNot("[test-kill]\n"), HasSubstr("unknown table [test-kill]"));
  EXPECT_THAT(WhyNot("[projects\n"), HasSubstr("unknown table [projects"));
  EXPECT_THAT(WhyNot("[]\n"), HasSubstr("unknown table []"));
  EXPECT_THAT(WhyNot("projects = \"vision=2\"\n"), HasSubstr("unknown key 'projects'"));
  EXPECT_THAT(WhyNot("[projects]\nvision\n"), HasSubstr("d.toml:2: expected key = value"));
  EXPECT_THAT(WhyNot("\"db = 1\n"), HasSubstr("expected key = value"));
  EXPECT_THAT(WhyNot("db = \"a\n"), HasSubstr("d.toml:1: the text does not end"));
  EXPECT_THAT(WhyNot("db = \"a\" b\n"), HasSubstr("the text does not end"));
}

TEST_F(DaemonOptionsTest, WhatIsOfTheCommandLineIsNoKey) {
  for (const std::string key : {"help", "version", "config"}) {
    EXPECT_THAT(WhyNot(key + " = true\n"), HasSubstr("d.toml:1: unknown key '" + key + "'"));
  }
  EXPECT_TRUE(Read("", {"--help"})->Flag("help"));
}

TEST_F(DaemonOptionsTest, WhatTomlMeansOtherwiseIsRefused) {
  EXPECT_THAT(WhyNot("\ndb = 'a.db'\n"), HasSubstr("d.toml:2: text stands in double quotes"));
  EXPECT_THAT(WhyNot("test-kill = [\"a\", \"b\"]\n"), HasSubstr("d.toml:1: expected one value"));
  EXPECT_THAT(WhyNot("test-kill = { a = 1 }\n"), HasSubstr("expected one value"));
  EXPECT_THAT(WhyNot("[projects]\nvision = '2'\n"), HasSubstr("double quotes"));
  EXPECT_THAT(WhyNot("[projects]\n'text to speech' = 3\n"), HasSubstr("d.toml:2: a key stands"));
  EXPECT_THAT(WhyNot("[projects]\n\"a\\tb\" = 3\n"), HasSubstr("d.toml:2: text has no escapes"));
  EXPECT_THAT(WhyNot("db = \"a\\tb\"\n"), HasSubstr("d.toml:1: text has no escapes"));
  EXPECT_THAT(WhyNot("db = [::1]:7421\n"), HasSubstr("\"[::1]:7421\""));
  EXPECT_THAT(Read("test-kill = \"a\"\ntest-kill = \"[b]\"\n")->List("test-kill"),
              ElementsAre("a", "[b]"));
  EXPECT_EQ(Read("db = \"'a'\"\n")->Text("db"), "'a'") << "letters of the text";
}

}  // namespace
}  // namespace hone
