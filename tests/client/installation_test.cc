// What `hone` ends with where its helper programs are missing, crash, lie or cannot be locked up,
// and where the log that is asked cannot answer: the documented exit codes, from the program
// itself.

#include "tests/client/installation.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/sanitizer.h"
#include "base/file.h"
#include "client/exit_code.h"
#include "db/log_file.h"
#include "measure/sandbox.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;
using testing::Installation;
using ::testing::Not;
using testing::ProgramRun;
using testing::RunHone;
using testing::TemporaryFolder;

constexpr char kFaultText[] = "This is a fault in Hone";

class InstallationTest : public ::testing::Test {
 protected:
  InstallationTest() {
    EXPECT_EQ(RunHone({"zoo", "mlp", "-o", model_}).exit_code, 0);
    EXPECT_TRUE(db::OpenLog(log_, {.mode = db::OpenMode::kWrite}).ok());
  }

  /// Every command that builds, with the schedules of a log and without.
  std::vector<std::vector<std::string>> Commands() const {
    std::vector<std::vector<std::string>> commands;
    for (const char* name : {"compile", "inspect", "bench", "check"}) {
      commands.push_back({name, model_, "--threads", "1"});
      commands.push_back({name, model_, "--threads", "1", "--db", log_});
    }
    return commands;
  }
  void ExpectEach(const Installation& hone, ExitCode code, const std::string& message) const {
    for (const std::vector<std::string>& words : Commands()) {
      SCOPED_TRACE(words[0] + (words.size() > 4 ? " --db" : ""));
      const ProgramRun run = hone.Run(words);
      EXPECT_EQ(run.exit_code, static_cast<int>(code)) << run.err;
      EXPECT_THAT(run.err, HasSubstr(message));
      if (code == ExitCode::kFault) {
        EXPECT_THAT(run.err, HasSubstr(kFaultText));
        EXPECT_THAT(run.err, HasSubstr("with this command line, the whole output, `hone "
                                       "--version`, and the model if you may share it"));
      } else {
        EXPECT_THAT(run.err, Not(HasSubstr(kFaultText)));
      }
    }
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_.Path("mlp.onnx"), log_ = folder_.Path("empty.db");
};

TEST_F(InstallationTest, ABuilderThatCrashesOrAnswersNonsenseIsAFault) {
  const Installation hone;
  hone.SetBuilderScript("echo last words >&2; kill -ABRT $$");
  ExpectEach(hone, ExitCode::kFault, "last words");
  hone.SetBuilderScript("echo this is no frame at all, whatever else it may be");
  ExpectEach(hone, ExitCode::kFault, "the builder broke off");
}

// A script goes on to compile what was tuned.
TEST_F(InstallationTest, ATuningInWhichNothingRanEndsWithAnError) {
  const Installation hone;
  // Well for the check before the tuning, which one process answers.
  const std::string checked = folder_.Path("checked");
  hone.SetBuilderScript("[ -e '" + checked + "' ] && kill -ABRT $$\n: >'" + checked + "'\nexec '" +
                        Installation::RealHelper("hone-builder") + "' \"$@\"");
  const ProgramRun run =
      hone.Run({"tune", model_, "--db", log_, "--trials", "3", "--threads", "1"});
  EXPECT_EQ(run.exit_code, static_cast<int>(ExitCode::kFault)) << run.err;
  EXPECT_THAT(run.err, HasSubstr("no candidate could be built and measured; no usable result"));
}

TEST_F(InstallationTest, ABuilderWithoutMemoryIsTheMachines) {
  const Installation hone;
  hone.SetBuilderScript("exit 77");
  ExpectEach(hone, ExitCode::kNoSpace, "the builder ran out of memory");
  // Without a limit to its address space a SIGKILL may be the builder's own doing.
  if (kSanitized) return;
  hone.SetBuilderScript("kill -KILL $$");
  ExpectEach(hone, ExitCode::kNoSpace, "the system killed the builder");
}

TEST_F(InstallationTest, WithoutABuilderItIsNotWhole) {
  const Installation hone("");
  ExpectEach(hone, ExitCode::kDevice, "build or install all of Hone again");
}

TEST_F(InstallationTest, ABuilderThatLiesMakesOutputsDiffer) {
  const Installation hone(HONE_LYING_BUILDER);
  for (const std::vector<std::string>& log :
       std::vector<std::vector<std::string>>{{}, {"--db", log_}}) {
    std::vector<std::string> words = {"check", model_, "--threads", "1"};
    words.insert(words.end(), log.begin(), log.end());
    const ProgramRun run = hone.Run(words);
    EXPECT_EQ(run.exit_code, static_cast<int>(ExitCode::kOutputsDiffer)) << run.err;
    EXPECT_THAT(run.err, HasSubstr("wrongly: element"));
    EXPECT_THAT(run.out, HasSubstr("trace (default)\n"));
  }
}

TEST_F(InstallationTest, WithoutSeccompNothingIsBuiltOrMeasuredAndDoctorSaysWhy) {
  if (!measure::SandboxHasAllowList()) GTEST_SKIP() << "no allow-list in this build";
  const Installation hone;
  const std::string wrapper = Installation::WithoutSeccomp();
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"compile", model_},
                                             {"compile", model_, "--db", log_},
                                             {"check", model_, "--db", log_},
                                             {"tune", model_, "--db", log_, "--trials", "1"}}) {
    SCOPED_TRACE(words[0]);
    const ProgramRun run = hone.Run(words, wrapper);
    EXPECT_EQ(run.exit_code, static_cast<int>(ExitCode::kDevice)) << run.err;
    EXPECT_THAT(run.err, HasSubstr("the sandbox cannot be set up: seccomp"));
  }
  const ProgramRun doctor = hone.Run({"doctor"}, wrapper);
  EXPECT_EQ(doctor.exit_code, static_cast<int>(ExitCode::kDoctor));
  // On its own too: without programs only the check of the sandbox can tell.
  const ProgramRun bare = Installation("", "").Run({"doctor"}, wrapper);
  EXPECT_EQ(bare.exit_code, static_cast<int>(ExitCode::kDoctor));
  for (const std::string& out : {doctor.out, bare.out}) {
    EXPECT_THAT(out, HasSubstr("seccomp filters are refused here: Operation not permitted"));
  }
  EXPECT_THAT(bare.out, HasSubstr("is missing or cannot be executed"));
}

TEST_F(InstallationTest, AMissingRecordAndADamagedLogKeepTheirCodesInEveryCommand) {
  std::string damaged = *ReadFile(log_);
  for (size_t at = 4096; at < damaged.size(); ++at) damaged[at] = '\x5a';
  const std::string path = folder_.Path("damaged.db");
  ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
  for (const char* command : {"compile", "check", "inspect"}) {
    SCOPED_TRACE(command);
    const ProgramRun missing = RunHone({command, model_, "--db", log_, "--require", "exact"});
    EXPECT_EQ(missing.exit_code, static_cast<int>(ExitCode::kRecordMissing)) << missing.err;
    const ProgramRun broken = RunHone({command, model_, "--db", path});
    EXPECT_EQ(broken.exit_code, static_cast<int>(ExitCode::kLog)) << broken.err;
  }
}

}  // namespace
}  // namespace hone::client
