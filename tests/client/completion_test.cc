#include "client/completion.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "client/option_table.h"
#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;
using testing::RunProcess;
using testing::TemporaryFolder;

/// What bash would offer for the last of `words`.
std::string Complete(const std::string& words, int count) {
  const TemporaryFolder folder;
  EXPECT_TRUE(WriteFileAtomically(folder.Path("hone.bash"), BashCompletion()).ok());
  const std::string script =
      "compopt() { :; }; source " + folder.Path("hone.bash") + " && COMP_WORDS=(" + words +
      ") && COMP_CWORD=" + std::to_string(count - 1) + " && _hone && echo \"${COMPREPLY[*]}\"";
  const auto run = RunProcess({"/bin/bash", "-c", script}, "/dev/null");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.out;
}

TEST(CompletionTest, BashOffersCommands) {
  EXPECT_EQ(Complete("hone zo", 2), "zoo\n");
  EXPECT_EQ(Complete("hone --v", 2), "--version\n");
  const std::string all = Complete("hone ''", 2);
  for (const CommandSpec& command : Commands())
    EXPECT_THAT(all, HasSubstr(std::string(command.name)));
}

TEST(CompletionTest, BashOffersOptionsAndChoices) {
  EXPECT_EQ(Complete("hone zoo --se", 3), "--seed\n");
  EXPECT_EQ(Complete("hone zoo resnet", 3), "resnet18 resnet50\n");
  EXPECT_EQ(Complete("hone completion z", 3), "zsh\n");
  EXPECT_EQ(Complete("hone zoo --seed 1", 4), "\n");
}

TEST(CompletionTest, BashOffersFilesForAFileOption) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.Path("model.onnx"), "").ok());
  EXPECT_EQ(Complete("hone zoo -o " + folder.Path("mo"), 4), folder.Path("model.onnx") + "\n");
}

TEST(CompletionTest, BashOffersWhatBelongsAtThePlaceOfTheWord) {
  const TemporaryFolder folder;
  for (const char* name : {"tune.db", "other.db"}) {
    ASSERT_TRUE(WriteFileAtomically(folder.Path(name), "").ok());
  }
  const std::string log = folder.Path("tune.db"), start = folder.Path("tu");
  EXPECT_EQ(Complete("hone db st", 3), "stats\n");
  EXPECT_EQ(Complete("hone db stats " + start, 4), log + "\n");
  EXPECT_EQ(Complete("hone db merge " + folder.Path("other.db") + " " + start, 5), log + "\n");
  EXPECT_EQ(Complete("hone db merge a b " + start, 6), "\n");
  EXPECT_EQ(Complete("hone bench a b c " + start, 6), log + "\n") << "as many as there are";
  // Options and their values have no place of their own.
  EXPECT_EQ(Complete("hone db --json -o x st", 6), "stats\n");
  EXPECT_EQ(Complete("hone db snapshot --output = x " + start, 7), log + "\n");
  EXPECT_EQ(Complete("hone session show ''", 4), "\n");
}

TEST(CompletionTest, ZshAcceptsTheScript) {
  if (!std::filesystem::exists("/usr/bin/zsh") && !std::filesystem::exists("/bin/zsh")) {
    GTEST_SKIP() << "zsh is not installed";
  }
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.Path("_hone"), ZshCompletion()).ok());
  const auto run =
      RunProcess({"/usr/bin/env", "zsh", "-f", "-n", folder.Path("_hone")}, "/dev/null");
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(CompletionTest, ZshNamesEveryOptionOnce) {
  const std::string script = ZshCompletion();
  for (const CommandSpec& command : Commands()) {
    for (const OptionSpec& option : command.options) {
      EXPECT_THAT(script, HasSubstr("--" + std::string(option.name) + "["));
    }
  }
}

TEST(CompletionTest, FishNamesEveryCommandOptionAndChoice) {
  const std::string script = FishCompletion();
  for (const CommandSpec& command : Commands()) {
    const std::string name(command.name);
    EXPECT_THAT(script, HasSubstr("__fish_use_subcommand -a " + name + " -d '"));
    const std::string line = "-n '__hone_command " + name + "' ";
    for (const OptionSpec& option : command.options) {
      EXPECT_THAT(script, HasSubstr(line + "-l " + std::string(option.name)));
    }
  }
  EXPECT_THAT(script, HasSubstr("command completion' -a 'bash zsh fish'\n"));
  EXPECT_THAT(script, HasSubstr("command bench' -l load -x -d '"));
  EXPECT_THAT(script, HasSubstr("command bench' -F\n"));
  EXPECT_THAT(script, HasSubstr("command zoo' -l output -s o -r -F -d '"));
}

TEST(CompletionTest, FishAcceptsTheScript) {
  if (!std::filesystem::exists("/usr/bin/fish")) GTEST_SKIP() << "fish is not installed";
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.Path("hone.fish"), FishCompletion()).ok());
  const auto run = RunProcess({"/usr/bin/fish", "-n", folder.Path("hone.fish")}, folder.path());
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(CompletionTest, FishOffersWhatTheWordsBeforeCallFor) {
  if (!std::filesystem::exists("/usr/bin/fish")) GTEST_SKIP() << "fish is not installed";
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.Path("hone.fish"), FishCompletion()).ok());
  const auto offered = [&](const std::string& line) {
    const auto run = RunProcess({"/usr/bin/fish", "--no-config", "-c",
                                 "cd " + folder.path() + "; source hone.fish; complete -C '" +
                                     line + "' | string split -f1 \\t | string join ' '"},
                                folder.path());
    EXPECT_EQ(run.err, "") << line;
    return run.out;
  };
  EXPECT_EQ(offered("hone tu"), "tune\n");
  EXPECT_EQ(offered("hone tune --sec"), "--seconds\n");
  EXPECT_EQ(offered("hone device list -o "), "json table wide\n") << "no files";
  EXPECT_EQ(offered("hone tune --seconds "), "") << "a number is no file";
  EXPECT_EQ(offered("hone tune --db h"), "hone.fish\n");
  EXPECT_EQ(offered("hone compile h"), "hone.fish\n");
  EXPECT_EQ(offered("hone session list tune --sec"), "") << "tune is no command here";
}

}  // namespace
}  // namespace hone::client
