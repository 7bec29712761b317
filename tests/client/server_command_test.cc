#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "client/server_options.h"
#include "tests/client/run_hone.h"

// What a farm's commands say of bad words before anybody is asked, and of a server that is none.
namespace hone::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramRun;
using testing::RunHone;

constexpr int kExitUsage = 2;
constexpr int kExitServer = 6;
// Nobody listens there.
constexpr char kNobody[] = "127.0.0.1:1";

ProgramRun Ask(std::vector<std::string> words) {
  words.insert(words.end(), {"--server", kNobody, "--insecure-loopback"});
  return RunHone(words);
}

TEST(ServerCommand, WordsThatCannotBeMeantAreRefusedBeforeAnybodyIsAsked) {
  struct Case {
    std::vector<std::string> words;
    std::string why;
  };
  const std::string of_device = "hone device drain WORKER/DEVICE";
  for (const auto& [words, why] : std::vector<Case>{
           {{"session", "list", "x"}, "\"x\" is one argument too many"},
           {{"session", "show"}, "name the session by its 32 hexadecimal digits"},
           {{"session", "cancel", "w1"}, "name the session by its 32 hexadecimal digits"},
           {{"device", "list", "w1/cpu:0"}, "\"w1/cpu:0\" is one argument too many"},
           {{"device", "drain"}, of_device},
           {{"device", "drain", "/cpu:0"}, of_device},
           {{"device", "drain", "w\xff/cpu:0"}, "worker: has characters that do not print"},
           {{"device", "drain", "w1/" + std::string(300, 'c')}, "device: 300 bytes are not within"},
       }) {
    const ProgramRun run = Ask(words);
    EXPECT_EQ(run.exit_code, kExitUsage) << run.err;
    EXPECT_THAT(run.err, HasSubstr(why));
    EXPECT_THAT(run.err, Not(HasSubstr("protobuf")));
  }
}

TEST(ServerCommand, WhatASessionMayNotHaveIsRefusedBeforeAnybodyIsAsked) {
  const testing::TemporaryFolder folder;
  const std::string model = folder.Path("mlp.onnx");
  ASSERT_EQ(RunHone({"zoo", "mlp", "-o", model}).exit_code, 0);
  for (const auto& [option, value, why] :
       {std::tuple{"--project", "v\xff", "project: has characters that do not print"},
        {"--device-class", "v\xff", "device_class: has characters that do not print"},
        {"--trials", "5000000000", "trials: 5000000000 is not within 0 and 4294967296"}}) {
    const ProgramRun run =
        Ask({"tune", model, "--target", "cpu:avx2", "--threads", "1", option, value});
    EXPECT_EQ(run.exit_code, kExitUsage) << run.err;
    EXPECT_THAT(run.err, HasSubstr(why));
    EXPECT_THAT(run.err, Not(HasSubstr("protobuf")));
  }
  const ProgramRun query = Ask({"query", model, "--device-class", "v\xff"});
  EXPECT_EQ(query.exit_code, kExitUsage) << query.err;
  EXPECT_THAT(query.err, HasSubstr("device_class: has characters that do not print"));
}

TEST(ServerCommand, AServerThatIsNotThereIsToldOfWithWhatToDo) {
  const SystemMonotonicClock clock;
  const int64_t begin_ns = clock.NowNs();
  const ProgramRun run = Ask({"session", "list"});
  EXPECT_LT(clock.NowNs() - begin_ns, 6'000'000'000) << "two seconds, and a busy machine";
  EXPECT_EQ(run.exit_code, kExitServer);
  EXPECT_THAT(run.err, HasSubstr("nothing listens there; see whether honed runs"));
  EXPECT_THAT(run.err, Not(HasSubstr("--tls"))) << "it was asked without";
}

TEST(ServerWords, AreReadBackByAShell) {
  Arguments arguments(*FindCommand("session"));
  arguments.Set("server", {"tuner:7421"});
  arguments.Set("tls", {"my creds"});
  EXPECT_EQ(ServerWords(arguments), "--server tuner:7421 --tls 'my creds'");
}

}  // namespace
}  // namespace hone::client
