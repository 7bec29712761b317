#include "client/farm_judge.h"

#include <set>
#include <sstream>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "client/arguments.h"
#include "tests/client/server_stub.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;

/// A server whose memory ends with it, as honed's.
class ForgetfulServer final : public testing::ServerStub {
 public:
  absl::StatusOr<std::string> PutPackage(const std::string& bytes) override {
    ++sent;
    if (std::exchange(starts_between_parts, false)) {
      return absl::FailedPreconditionError("a part that does not follow the one before");
    }
    packages.insert(bytes);
    return bytes;  // as good as a hash
  }
  absl::StatusOr<ModelAnswer> JudgeModel(const ModelQuestion& question) override {
    ++asked;
    if (asked == starts_again_at) {
      packages.clear();
      if (away) return absl::UnavailableError("no connection");
    }
    for (const std::string& package : {question.default_package, question.tuned_package}) {
      if (!packages.contains(package)) {
        return absl::FailedPreconditionError("package " + package + " is not here");
      }
    }
    if (asked < done_at) return ModelAnswer{.reason = "waits for a device of class c"};
    return ModelAnswer{.done = true, .verdict = db::ModelVerdict{.ratio = 2}};
  }

  std::set<std::string> packages;
  int sent = 0, asked = 0, starts_again_at = -1, done_at = 6;
  bool away = false, starts_between_parts = false;
};

class FarmJudgeTest : public ::testing::Test {
 protected:
  absl::StatusOr<FarmJudgement> Await() {
    CommandContext context{arguments_, environment_, out_, err_};
    return AwaitJudgement(context, server_, {.tuned = {{1, 1}}},
                          {.by_default = "default", .tuned = "tuned"}, [this] { return stopped_; });
  }

  FakeClock clock_;
  const Environment environment_{.clock = &clock_};
  const Arguments arguments_;
  std::ostringstream out_, err_;
  ForgetfulServer server_;
  bool stopped_ = false;
};

TEST_F(FarmJudgeTest, AServerThatWasStartedAgainGetsThePackagesAgain) {
  server_.starts_again_at = 3;
  server_.away = true;
  const auto judgement = Await();
  ASSERT_TRUE(judgement.ok()) << judgement.status();
  ASSERT_TRUE(judgement->verdict.has_value());
  EXPECT_EQ(judgement->verdict->ratio, 2);
  EXPECT_EQ(server_.sent, 4);
  EXPECT_THAT(err_.str(), HasSubstr("comparing the whole model: waits for a device of class c\n"));
}

TEST_F(FarmJudgeTest, APackageWhoseFirstPartsWereForgottenIsSentFromItsBegin) {
  server_.starts_between_parts = true;
  const auto judgement = Await();
  ASSERT_TRUE(judgement.ok()) << judgement.status();
  EXPECT_TRUE(judgement->verdict.has_value());
  EXPECT_EQ(server_.sent, 3);
}

TEST_F(FarmJudgeTest, WhatAServerRefusesAtOnceIsNotAskedForEver) {
  server_.starts_again_at = 1;
  EXPECT_EQ(Await().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(server_.asked, 1);
}

TEST_F(FarmJudgeTest, WhoEndsTheWaitIsToldWhatItWaitedFor) {
  stopped_ = true;
  const auto judgement = Await();
  ASSERT_TRUE(judgement.ok()) << judgement.status();
  EXPECT_EQ(judgement->skipped, "interrupted: waits for a device of class c");
}

}  // namespace
}  // namespace hone::client
