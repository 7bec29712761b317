#include "client/machine_warnings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/cpu.h"
#include "client/busy_processes.h"
#include "client/npz.h"
#include "graph/graph.h"
#include "tests/client/logged_network.h"
#include "tests/client/run_hone.h"
#include "tests/client/small_tuning.h"

namespace hone::client::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(MachineWarnings, TellsOfMoreThreadsThanCpus) {
  EXPECT_THAT(ManyThreadsText(3, 2), HasSubstr("3 threads on 2 CPUs: "));
  EXPECT_THAT(ManyThreadsText(2, 1), HasSubstr("2 threads on 1 CPU: "));
  EXPECT_THAT(ManyThreadsText(2, 2), IsEmpty());
  EXPECT_GE(CpusHere(), 1);
}

TEST(MachineWarnings, TellsOfProgramsThatDisturb) {
  EXPECT_THAT(BusyMachineText(1.31), HasSubstr("other programs keep 1.3 CPUs busy"));
  EXPECT_THAT(BusyMachineText(0.1), IsEmpty());
}

using MachineWarningsOfCommands = LoggedNetwork;

TEST_F(MachineWarningsOfCommands, RunAndBenchTellOfMoreThreadsThanCpus) {
  const std::string package = folder_.Path("mlp.hone");
  ASSERT_EQ(RunHone({"compile", model_, "-o", package, "--no-log"}).exit_code, 0);
  const std::string many = std::to_string(CpusHere() + 1), inputs = folder_.Path("x.npz");
  const std::vector<double> zeros(784);
  ASSERT_TRUE(
      WriteNpz(inputs, {{"input", *graph::MakeConstant(ir::DType::kF32, {1, 784}, zeros)}}).ok());
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run", package, "--inputs", inputs},
        {"bench", package, "--seconds", "0.05"}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--threads", many});
    const ProgramRun warned = RunHone(words);
    EXPECT_EQ(warned.exit_code, 0) << warned.err;
    EXPECT_THAT(warned.err, HasSubstr("warning: " + many + " threads on "));
    words.back() = "1";
    EXPECT_THAT(RunHone(words).err, Not(HasSubstr("warning")));
  }
}

TEST_F(MachineWarningsOfCommands, TuneTellsOfMoreThreadsThanCpus) {
  const std::string many = std::to_string(CpusHere() + 1), said = " threads on ";
  std::vector<std::string> words = {"tune",     model_, "--db",      folder_.Path("t.db"),
                                    "--trials", "1",    "--threads", many};
  const ProgramRun warned = RunHone(words);
  EXPECT_EQ(warned.exit_code, 0) << warned.err;
  EXPECT_THAT(warned.err, HasSubstr("warning: " + many + said));
  words.back() = "1";
  EXPECT_THAT(RunHone(words).err, Not(HasSubstr(said)));
}

// A short tuning looks for as long as a long one.
TEST_F(MachineWarningsOfCommands, TuneTellsOfProgramsThatDisturb) {
  const auto busy = BusyProcesses::Start(static_cast<int>(AllowedCpus().size()));
  ASSERT_TRUE(busy.ok()) << busy.status();
  // Beside them a second may be too short for a result.
  for (const auto& [budget, value] : {std::pair{"--seconds", "5"}, {"--trials", "1"}}) {
    const ProgramRun tuned = RunHone({"tune", model_, budget, value, "--db", folder_.Path(budget)});
    EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
    EXPECT_THAT(tuned.err, HasSubstr("warning: other programs keep ")) << budget;
  }
}

// Those that won a comparison too, which answer before all that were only screened.
TEST_F(MachineWarningsOfCommands, CompileCountsAllKernelsThatWereTunedBesideOtherPrograms) {
  const std::string log = folder_.Path("busy.db");
  ProgramRun tuned;
  {
    const auto busy = BusyProcesses::Start(static_cast<int>(AllowedCpus().size()));
    ASSERT_TRUE(busy.ok()) << busy.status();
    // So many trials meet each kernel; beside others ten seconds may be too short for them.
    tuned = RunHone(
        {"tune", model_, "--trials", "24", "--seconds", "60", "--threads", "1", "--db", log});
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  }
  const std::vector<std::string> compile = {
      "compile", model_, "--threads", "1", "--db", log, "-o", folder_.Path("busy.hone")};
  std::vector<std::string> json = compile;
  json.push_back("--json");
  EXPECT_THAT(RunHone(compile).err,
              HasSubstr("3 of 3 kernels were measured while other programs ran"))
      << RunHone(json).out << tuned.err;
}

TEST_F(MachineWarningsOfCommands, CompileCountsKernelsThatRestOnNoisyRecords) {
  const std::vector<std::string> words = {"compile",        model_,   "--target", kTarget,
                                          "--db",           log_,     "-o",       folder_.Path("m"),
                                          "--device-class", "class-a"};
  EXPECT_THAT(RunHone(words).err, Not(HasSubstr("while other programs ran")));
  Append(trace_, 4000, /*noisy=*/true);
  EXPECT_THAT(RunHone(words).err,
              HasSubstr("1 of 3 kernels were measured while other programs ran"));
  std::vector<std::string> json = words;
  json.push_back("--json");
  int noisy = 0;
  const auto report = Parse(RunHone(json));
  for (const auto& kernel : report["kernels"]) noisy += kernel["noisy"] == true;
  EXPECT_EQ(noisy, 1);
}

}  // namespace
}  // namespace hone::client::testing
