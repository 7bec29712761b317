// The log that `hone tune` writes, as commands find it that are given a model and no --db.

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/unique_fd.h"
#include "base/file.h"
#include "tests/client/installation.h"
#include "tests/client/logged_network.h"
#include "tests/client/small_tuning.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Parse;
using testing::ProgramRun;
using testing::RunHone;
using testing::Variables;
using Words = std::vector<std::string>;

class DefaultLogTest : public testing::LoggedNetwork {
 protected:
  /// `hone COMMAND MODEL --target T ...` where HONE_DB names a log.
  ProgramRun With(const std::string& log, const std::string& command, Words more = {}) const {
    more.insert(more.begin(), {command, model_, "--target", kTarget});
    if (command == "compile") more.insert(more.end(), {"-o", package_});
    if (command == "bench") more.insert(more.end(), {"--seconds", "0.01"});
    if (command == "run") more.insert(more.end(), {"--inputs", folder_.Path("mlp.inputs.npz")});
    return RunHone(more, "/dev/null", {"HONE_DB=" + log});
  }

  /// A file in the log's folder.
  std::string Write(const std::string& name, const std::string& bytes) const {
    EXPECT_TRUE(WriteFileAtomically(folder_.Path(name), bytes).ok());
    return folder_.Path(name);
  }

  const std::string package_ = folder_.Path("m.hone");
};

TEST_F(DefaultLogTest, QuietSaysNothingButResultsAndErrors) {
  EXPECT_THAT(With(log_, "compile").err, HasSubstr("kernels from '" + log_));
  const ProgramRun run = With(log_, "compile", {"-q"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.out, HasSubstr("wrote " + package_));
  EXPECT_THAT(With(Write("no.db", "no log"), "compile", {"-q"}).err, HasSubstr("no.db"));
}

const char* const kReaders[] = {"compile", "run", "bench", "inspect", "check"};

TEST_F(DefaultLogTest, CommandsThatAreGivenAModelReadItAndSaySo) {
  for (const std::string command : kReaders) {
    const ProgramRun run = With(log_, command);
    EXPECT_EQ(run.exit_code, 0) << command << run.err;
    if (command == "check") {
      EXPECT_THAT(run.out, HasSubstr("1 also by the schedule of '" + log_ +
                                     "'; --no-log checks the defaults alone\n"));
    } else {
      EXPECT_EQ(run.err, "1 of 3 kernels from '" + log_ + "'; --no-log compiles the defaults\n")
          << command;
    }
    const ProgramRun without = With(log_, command, {"--no-log"});
    EXPECT_EQ(without.exit_code, 0) << command << without.err;
    EXPECT_THAT(without.out + without.err, Not(HasSubstr(log_))) << command;
  }
}

TEST_F(DefaultLogTest, WithJsonTheObjectNamesItAndNothingElseIsSaid) {
  for (const std::string command : {"compile", "run", "bench"}) {
    const ProgramRun run = With(log_, command, {"--json"});
    EXPECT_EQ(Parse(run)["log"], log_) << command;
    EXPECT_THAT(run.err, IsEmpty()) << command;
    EXPECT_TRUE(Parse(With(log_, command, {"--json", "--no-log"}))["log"].is_null()) << command;
  }
}

TEST_F(DefaultLogTest, LineThenHoneDbThenConfigurationThenTheDataFolderNameIt) {
  std::filesystem::create_directories(folder_.Path("config/hone"));
  std::filesystem::create_directories(folder_.Path("data/hone"));
  const std::string data = folder_.Path("data/hone/tune.db");
  const std::string configured = folder_.Path("configured.db"), named = folder_.Path("named.db");
  for (const std::string& copy : {data, configured, named}) {
    std::filesystem::copy_file(log_, copy);
  }
  const auto read = [&](const Variables& variables, Words more) -> std::string {
    more.insert(more.begin(), {"compile", model_, "--target", kTarget, "-o", package_, "--json"});
    Variables all = {"XDG_DATA_HOME=" + folder_.Path("data")};
    all.insert(all.end(), variables.begin(), variables.end());
    const json log = Parse(RunHone(more, "/dev/null", all))["log"];
    return log.is_null() ? "" : log.get<std::string>();
  };
  const std::string config = "XDG_CONFIG_HOME=" + folder_.Path("config");
  EXPECT_EQ(read({}, {}), data);
  Write("config/hone/config.toml", "db = \"" + configured + "\"\n");
  EXPECT_EQ(read({config}, {}), configured);
  EXPECT_EQ(read({config, "HONE_DB=" + named}, {}), named);
  EXPECT_EQ(read({config, "HONE_DB=" + named}, {"--db", log_}), log_);
  // Where it says that none is read, a line may name one all the same.
  Write("config/hone/config.toml", "no-log = true\n");
  EXPECT_EQ(read({config}, {}), "");
  EXPECT_EQ(read({config}, {"--db", log_}), log_);
  EXPECT_EQ(With(log_, "compile", {"--no-log", "--db", log_}).exit_code, 2);
}

TEST_F(DefaultLogTest, ThatThereIsNoneIsNoErrorButWhereARecordIsRequired) {
  // An empty file is how a log begins.
  for (const std::string& none : {folder_.Path("none.db"), Write("empty.db", "")}) {
    for (const std::string command : kReaders) {
      const ProgramRun run = With(none, command);
      EXPECT_EQ(run.exit_code, 0) << command << run.err;
    }
    const ProgramRun required = With(none, "compile", {"--require", "exact"});
    EXPECT_EQ(required.exit_code, 2);
    EXPECT_THAT(required.err, HasSubstr("there is none at '" + none + "'"));
  }
}

TEST_F(DefaultLogTest, QueryAndExplainTellOfTheDefaultsWhereThereIsNone) {
  for (const std::string& none : {folder_.Path("none.db"), Write("empty.db", "")}) {
    const auto says = AllOf(HasSubstr("there is no log '" + none + "'"),
                            HasSubstr("\n    hone tune " + model_ + " --target " + kTarget + "\n"));
    const ProgramRun query = With(none, "query");
    EXPECT_EQ(query.exit_code, 0) << query.err;
    EXPECT_THAT(query.out, HasSubstr("\n3 default\n"));
    EXPECT_THAT(query.err, says);
    EXPECT_EQ(Parse(With(none, "query", {"--json"}))["rungs"]["default"], 3);
    const ProgramRun explain = With(none, "explain");
    EXPECT_EQ(explain.exit_code, 0) << explain.err;
    EXPECT_THAT(explain.out, AllOf(HasSubstr("the default schedule is used"),
                                   Not(HasSubstr("hone explain HASH"))));
    EXPECT_THAT(explain.err, says);
    EXPECT_TRUE(Parse(With(none, "explain", {"--json"}))["log"].is_null());
    const ProgramRun task = RunHone({"explain", "0123abcd"}, "/dev/null", {"HONE_DB=" + none});
    EXPECT_EQ(task.exit_code, 3);
    EXPECT_THAT(task.err, HasSubstr("there is no log '" + none + "'"));
  }
  // What was named is expected to be there.
  EXPECT_EQ(RunHone({"explain", model_, "--db", folder_.Path("none.db")}).exit_code, 3);
}

TEST_F(DefaultLogTest, CompileSaysHowAModelIsTunedThatTheLogDoesNotKnow) {
  const std::string none = folder_.Path("none.db");
  EXPECT_THAT(With(none, "compile").err,
              AllOf(HasSubstr("there is no log '" + none + "'"),
                    HasSubstr("\n    hone tune " + model_ + " --target " + kTarget + "\n")));
  const ProgramRun other =
      RunHone({"compile", model_, "--db", log_, "--target", "cpu:avx2,threads=2", "-o", package_,
               "--device-class", "class-a", "--accuracy", "strict", "--precision", "bf16"});
  EXPECT_THAT(other.err, AllOf(HasSubstr("'" + log_ + "' knows none of this model's kernels"),
                               HasSubstr("    hone tune " + model_ + " --db " + log_ +
                                         " --target cpu:avx2,threads=2 --accuracy strict"
                                         " --precision bf16\n")))
      << other.out;
  EXPECT_THAT(With(none, "compile", {"--no-log"}).err, IsEmpty());
  EXPECT_THAT(With(none, "bench").err, Not(HasSubstr("hone tune")));
}

TEST_F(DefaultLogTest, OneThatCannotBeReadEndsWithFiveAndNamesNoLog) {
  const std::string bytes = *ReadFile(log_);
  // SQLite keeps the user version at byte 60, the highest byte first.
  std::string newer = bytes, damaged = bytes;
  newer.replace(60, 4, std::string("\0\0\0\x63", 4));
  for (size_t i = 4096; i < damaged.size(); i += 7) damaged[i] ^= 0x5a;
  std::filesystem::create_directory(folder_.Path("folder.db"));
  std::filesystem::create_symlink("nothing.db", folder_.Path("broken.db"));
  const std::string unusable[] = {Write("newer.db", newer), Write("damaged.db", damaged),
                                  Write("text.db", "no log"), folder_.Path("folder.db"),
                                  folder_.Path("broken.db")};
  for (const std::string& log : unusable) {
    for (const std::string command : kReaders) {
      const ProgramRun run = With(log, command);
      EXPECT_EQ(run.exit_code, 5) << command << log << run.err;
      EXPECT_THAT(run.err, HasSubstr("; --no-log compiles the defaults without it\n"));
      EXPECT_THAT(run.out, IsEmpty()) << command << log;
    }
    EXPECT_EQ(With(log, "compile", {"--no-log"}).exit_code, 0) << log;
    // These have no such option, and do not name it.
    for (const std::string command : {"query", "explain"}) {
      const ProgramRun run = With(log, command);
      EXPECT_EQ(run.exit_code, 5) << command << log << run.err;
      EXPECT_THAT(run.err, Not(HasSubstr("--no-log"))) << command;
    }
  }
  // A link to nothing is how a log on another disk may begin.
  EXPECT_EQ(With(folder_.Path("broken.db"), "tune", {"--trials", "1", "--seconds", "5"}).exit_code,
            0);
  EXPECT_EQ(With(folder_.Path("broken.db"), "compile").exit_code, 0);
}

TEST_F(DefaultLogTest, WhatIsNoLogInItsPlaceEndsWithFiveInCommandsThatNeedOne) {
  const std::string text = Write("text.db", "no log");
  const std::string page = folder_.Path("report.html");
  for (const Words& words :
       {Words{"report", "-o", page}, Words{"db", "stats"}, Words{"db", "verify"},
        Words{"db", "compact"}, Words{"tune", model_, "--trials", "1"},
        Words{"tune", model_, "--dry-run"}}) {
    const ProgramRun run = RunHone(words, "/dev/null", {"HONE_DB=" + text});
    EXPECT_EQ(run.exit_code, 5) << words[0] << words[1] << run.err;
    EXPECT_THAT(run.err, HasSubstr("'" + text + "' is not a tuning log of Hone"));
    // Where the line gives it as one, it is a bad file.
    Words named = words;
    named.insert(named.end(), {"--db", text});
    EXPECT_EQ(RunHone(named).exit_code, 3) << words[0] << words[1];
  }
  EXPECT_EQ(RunHone({"db", "stats", text}).exit_code, 3);
}

TEST_F(DefaultLogTest, OneThatAnotherProcessHoldsEndsWithFive) {
  const UniqueFd log(::open(log_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(log.valid());
  // The bytes that SQLite locks for itself alone: pending, reserved and shared.
  flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512};
  ASSERT_EQ(::fcntl(log.get(), F_SETLK, &lock), 0);
  const ProgramRun run = With(log_, "compile");
  EXPECT_EQ(run.exit_code, 5) << run.err;
  EXPECT_THAT(run.err, HasSubstr("--no-log compiles the defaults without it"));
}

TEST_F(DefaultLogTest, OneOfAnotherUserIsReadWhereItsFolderMayBeWritten) {
  const testing::Installation hone;
  hone.OpenToAll();
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(log_, std::filesystem::perms(0444));
  Words prefix;
  if (::geteuid() == 0) {  // who may write everywhere
    prefix = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  }
  const auto run = [&](const Words& more) {
    Words words = prefix;
    words.insert(words.end(), {hone.Program(), more.front(), model_, "--target", kTarget});
    words.insert(words.end(), more.begin() + 1, more.end());
    return testing::RunProcess(words, "/dev/null", {"HONE_DB=" + log_});
  };
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0555));
  const ProgramRun closed = run({"inspect"});
  EXPECT_EQ(closed.exit_code, 9) << closed.err;
  EXPECT_THAT(closed.err, HasSubstr("--no-log compiles the defaults without it"));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0777));
  const ProgramRun open = run({"inspect"});
  EXPECT_EQ(open.exit_code, 0) << open.err;
  EXPECT_THAT(open.err, HasSubstr("1 of 3 kernels from"));
  const ProgramRun tuned = run({"tune", "--trials", "1"});
  EXPECT_EQ(tuned.exit_code, 9) << tuned.err;
  EXPECT_THAT(tuned.err, HasSubstr("cannot write log '" + log_ + "'"));
}

TEST_F(DefaultLogTest, PackagesTracesAndServersNeverLookAtIt) {
  const std::string unusable = folder_.Path("folder.db");
  std::filesystem::create_directory(unusable);
  ASSERT_EQ(With(unusable, "compile", {"--no-log"}).exit_code, 0);
  const Variables variables = {"HONE_DB=" + unusable};
  EXPECT_EQ(RunHone({"bench", package_, "--seconds", "0.01"}, "/dev/null", variables).exit_code, 0);
  EXPECT_EQ(RunHone({"inspect", package_}, "/dev/null", variables).exit_code, 0);
  EXPECT_EQ(With(unusable, "compile", {"--traces", folder_.path()}).exit_code, 0);
  EXPECT_EQ(With(unusable, "compile", {"--db", log_}).exit_code, 0);
  const ProgramRun server =
      With(unusable, "compile", {"--server", "127.0.0.1:1", "--insecure-loopback"});
  EXPECT_EQ(server.exit_code, 6) << server.err;
}

TEST_F(DefaultLogTest, NoPathOfItEntersAPackage) {
  const auto package = [&](const std::string& log, const Words& more) {
    const ProgramRun run = With(log, "compile", more);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return *ReadFile(package_);
  };
  std::filesystem::create_directory(folder_.Path("elsewhere"));
  const std::string copy = folder_.Path("elsewhere/other.db");
  std::filesystem::copy_file(log_, copy);
  const std::string bytes = package(log_, {});
  EXPECT_EQ(bytes.find(folder_.path()), std::string::npos);
  EXPECT_EQ(package(copy, {}), bytes);
  EXPECT_EQ(package(folder_.Path("none.db"), {"--db", log_}), bytes);
  // A log that knows nothing of the model leaves no trace.
  const std::string defaults = package(log_, {"--no-log"});
  EXPECT_NE(defaults, bytes);
  const Words strict = {"--accuracy", "strict"};
  EXPECT_EQ(package(log_, strict), package(folder_.Path("none.db"), strict));
}

TEST_F(DefaultLogTest, TheDependencyFileNamesIt) {
  const std::string rule = folder_.Path("m.d");
  ASSERT_EQ(With(log_, "compile", {"--depfile", rule}).exit_code, 0);
  EXPECT_EQ(*ReadFile(rule), package_ + ": \\\n  " + model_ + " \\\n  " + log_ + "\n");
  ASSERT_EQ(With(log_, "compile", {"--depfile", rule, "--no-log"}).exit_code, 0);
  EXPECT_EQ(*ReadFile(rule), package_ + ": \\\n  " + model_ + "\n");
}

}  // namespace
}  // namespace hone::client
