// `hone db recheck` on a CPU, run as a program.

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "tests/client/run_hone.h"
#include "tests/client/small_tuning.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Parse;
using testing::ProgramRun;
using testing::RunHone;

class RecheckTest : public testing::SmallTuning {
 protected:
  /// The best record of each Workload, by id.
  std::map<std::string, std::string> Best() const {
    std::map<std::string, std::string> best;
    const json listed = Parse(RunHone({"db", "best", log_, "--json"}));
    for (const json& record : listed["records"]) best[record["workload"]] = record["record"];
    return best;
  }
  json Recheck(std::vector<std::string> more) const {
    more.insert(more.begin(), {"db", "recheck", log_, "--json"});
    return Parse(RunHone(more));
  }
};

TEST_F(RecheckTest, WinnersAreMeasuredAgainAndAnswerInTheirPlace) {
  ASSERT_EQ(Tune({"--trials", "12", "--seconds", "60"}).exit_code, 0);
  const auto before = Best();
  ASSERT_EQ(before.size(), 3U);
  const size_t attempts = ReadLog().content.size();
  // The CPU is what it was.
  const json nothing = Recheck({});
  EXPECT_EQ(nothing["unchanged"], 3);
  EXPECT_TRUE(nothing["rechecked"].empty());
  EXPECT_EQ(Best(), before);

  const json all = Recheck({"--all", "--top", "2"});
  EXPECT_EQ(all["unchanged"], 0);
  ASSERT_EQ(all["rechecked"].size(), 3U) << all.dump(1);
  for (const json& each : all["rechecked"]) {
    EXPECT_EQ(each["error"], "");
    EXPECT_GT(each["now_us"], 0);
    EXPECT_GT(each["was_us"], 0);
  }
  const auto after = Best();
  ASSERT_EQ(after.size(), 3U);
  for (const auto& [workload, record] : after) EXPECT_NE(record, before.at(workload));
  EXPECT_EQ(ReadLog().content.size(), attempts) << "nothing was searched";
  // Compiling takes what was measured last.
  const std::string package = folder_.Path("small.hone");
  ASSERT_EQ(
      RunHone({"compile", model_, "--db", log_, "--target", "cpu:avx2,threads=1", "-o", package})
          .exit_code,
      0);
  const json inspected = Parse(RunHone({"inspect", package, "--json"}));
  for (const json& kernel : inspected["kernels"]) {
    // A model may keep a default, which no record stands for.
    for (const auto& [workload, record] : before) EXPECT_NE(kernel["record"], record);
  }
  EXPECT_EQ(RunHone({"db", "verify", log_}).exit_code, 0);
}

TEST_F(RecheckTest, SaysWhatItDid) {
  ASSERT_EQ(Tune({"--trials", "6", "--seconds", "60"}).exit_code, 0);
  const ProgramRun nothing = RunHone({"db", "recheck", log_});
  EXPECT_EQ(nothing.exit_code, 0) << nothing.err;
  EXPECT_THAT(nothing.out, HasSubstr("0 kernels measured again, 0 have another best schedule"));
  EXPECT_THAT(nothing.out,
              HasSubstr("were measured on this device as it is now; --all takes them"));
  EXPECT_EQ(RunHone({"db", "recheck", folder_.Path("none.db")}).exit_code, 3);
  InstallLyingBuilder();
  const ProgramRun lied = testing::RunProcess(
      {program_, "db", "recheck", log_, "--all", "--cache-mb", "0"}, "/dev/null");
  EXPECT_EQ(lied.exit_code, 0) << lied.err;
  EXPECT_THAT(lied.out, HasSubstr("2 could not be measured"));
}

}  // namespace
}  // namespace hone::client
