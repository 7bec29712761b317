#include "client/exit_code.h"

#include <set>

#include "gtest/gtest.h"

#include "client/model_loader.h"
#include "client/open_log.h"

namespace hone::client {
namespace {

TEST(ExitCodeTest, NumbersAreThoseOfTheDocuments) {
  EXPECT_EQ(static_cast<int>(ExitCode::kDone), 0);
  EXPECT_EQ(static_cast<int>(ExitCode::kFault), 1);
  EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::kBadInput), 3);
  EXPECT_EQ(static_cast<int>(ExitCode::kRecordMissing), 4);
  EXPECT_EQ(static_cast<int>(ExitCode::kLog), 5);
  EXPECT_EQ(static_cast<int>(ExitCode::kServer), 6);
  EXPECT_EQ(static_cast<int>(ExitCode::kInterrupted), 7);
  EXPECT_EQ(static_cast<int>(ExitCode::kDevice), 8);
  EXPECT_EQ(static_cast<int>(ExitCode::kNoSpace), 9);
  EXPECT_EQ(static_cast<int>(ExitCode::kOutputsDiffer), 10);
  EXPECT_EQ(static_cast<int>(ExitCode::kDoctor), 11);
  EXPECT_EQ(kNumExitCodes, 12);
  std::set<std::string_view> names;
  for (int i = 0; i < kNumExitCodes; ++i) names.insert(ExitCodeName(static_cast<ExitCode>(i)));
  EXPECT_EQ(names.size(), 12U);
}

TEST(ExitCodeTest, FollowsTheStatusCode) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kDone);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("x")), ExitCode::kBadInput);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("x")), ExitCode::kBadInput);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("x")), ExitCode::kBadInput);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("x")), ExitCode::kDevice);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("x")), ExitCode::kNoSpace);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("x")), ExitCode::kNoSpace);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("x")), ExitCode::kInterrupted);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("x")), ExitCode::kServer);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("x")), ExitCode::kFault);
  EXPECT_EQ(ExitCodeOf(absl::UnknownError("x")), ExitCode::kFault);
}

TEST(ExitCodeTest, AGivenCodeWins) {
  const absl::Status status =
      WithExitCode(absl::InvalidArgumentError("outputs differ"), ExitCode::kOutputsDiffer);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kOutputsDiffer);
  EXPECT_EQ(status.message(), "outputs differ");
  EXPECT_TRUE(WithExitCode(absl::OkStatus(), ExitCode::kFault).ok());
  EXPECT_TRUE(HasExitCode(status));
  EXPECT_FALSE(HasExitCode(absl::InvalidArgumentError("x")));
}

TEST(ExitCodeTest, WhoKnewMostIsNotOverruled) {
  const absl::Status missing = WithExitCode(absl::NotFoundError("x"), ExitCode::kRecordMissing);
  EXPECT_EQ(ExitCodeOf(CompileError(missing)), ExitCode::kRecordMissing);
  const absl::Status server = WithExitCode(absl::UnavailableError("x"), ExitCode::kServer);
  EXPECT_EQ(ExitCodeOf(LogError(server)), ExitCode::kServer);
  EXPECT_EQ(ExitCodeOf(CompileError(LogError(absl::DataLossError("x")))), ExitCode::kLog);
}

TEST(ExitCodeTest, OfTheBuilderNothingIsTheServers) {
  EXPECT_EQ(ExitCodeOf(CompileError(absl::DeadlineExceededError("x"))), ExitCode::kFault);
  EXPECT_EQ(ExitCodeOf(CompileError(absl::AbortedError("x"))), ExitCode::kFault);
  EXPECT_EQ(ExitCodeOf(CompileError(absl::DataLossError("x"))), ExitCode::kFault);
  EXPECT_EQ(ExitCodeOf(CompileError(absl::InvalidArgumentError("x"))), ExitCode::kFault);
  EXPECT_EQ(ExitCodeOf(CompileError(absl::UnavailableError("x"))), ExitCode::kNoSpace);
  EXPECT_EQ(ExitCodeOf(CompileError(absl::ResourceExhaustedError("x"))), ExitCode::kNoSpace);
  EXPECT_EQ(ExitCodeOf(CompileError(absl::NotFoundError("x"))), ExitCode::kDevice);
  EXPECT_EQ(ExitCodeOf(CompileError(absl::FailedPreconditionError("x"))), ExitCode::kDevice);
  EXPECT_EQ(ExitCodeOf(CompileError(absl::OutOfRangeError("x"))), ExitCode::kBadInput);
  EXPECT_EQ(ExitCodeOf(CompileError(absl::UnimplementedError("x"))), ExitCode::kBadInput);
}

}  // namespace
}  // namespace hone::client
