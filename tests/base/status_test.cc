#include "base/status.h"

#include <cerrno>
#include <memory>
#include <string>

#include "gtest/gtest.h"

#include "base/core/result.h"

namespace hone {
namespace {

absl::StatusOr<std::unique_ptr<int>> MakeInt(int value) {
  if (value < 0) return absl::OutOfRangeError("negative");
  return std::make_unique<int>(value);
}

absl::StatusOr<int> Doubled(int value) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<int> first, MakeInt(value));
  HONE_ASSIGN_OR_RETURN(auto second, MakeInt(value));
  return *first + *second;
}

absl::Status Passes(const absl::Status& status, bool* went_on) {
  HONE_RETURN_IF_ERROR(status);
  *went_on = true;
  return absl::OkStatus();
}

Result<std::string> RuntimeName(int id) {
  if (id == 0) return Status(StatusCode::kNotFound, "no such id");
  return std::string("id") + std::to_string(id);
}

Result<std::string> RuntimeGreeting(int id) {
  HONE_ASSIGN_OR_RETURN(std::string name, RuntimeName(id));
  return "hello " + name;
}

TEST(StatusMacros, MoveTheValueOutOrPassTheErrorUp) {
  EXPECT_EQ(Doubled(21).value(), 42);
  EXPECT_EQ(Doubled(-1).status(), absl::OutOfRangeError("negative"));
}

TEST(StatusMacros, ReturnIfErrorGoesOnOnlyWhenOk) {
  bool went_on = false;
  EXPECT_EQ(Passes(absl::InternalError("x"), &went_on), absl::InternalError("x"));
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(Passes(absl::OkStatus(), &went_on).ok());
  EXPECT_TRUE(went_on);
}

TEST(StatusMacros, WorkForTheRuntimesResult) {
  EXPECT_EQ(*RuntimeGreeting(3), "hello id3");
  EXPECT_EQ(RuntimeGreeting(0).status(), Status(StatusCode::kNotFound, "no such id"));
}

TEST(Status, RuntimeStatusBecomesAbseilStatusWithTheSameCode) {
  EXPECT_EQ(ToAbsl(Status()), absl::OkStatus());
  for (int code = 1; code <= 16; ++code) {
    const Status status(static_cast<StatusCode>(code), "m");
    const absl::Status converted = ToAbsl(status);
    EXPECT_EQ(static_cast<int>(converted.code()), code);
    EXPECT_EQ(status.ToString(), converted.ToString());
  }
}

TEST(Status, AnnotateKeepsCodeAndPutsContextFirst) {
  EXPECT_EQ(Annotate(absl::NotFoundError("no file"), "reading the plan"),
            absl::NotFoundError("reading the plan: no file"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "reading").ok());
}

TEST(Status, ErrnoSaysWhatAndWhyAndKeepsTheKind) {
  EXPECT_EQ(ErrnoStatus(ENOENT, "open 'a.onnx'"),
            absl::NotFoundError("cannot open 'a.onnx': No such file or directory"));
  EXPECT_EQ(ErrnoStatus(ENOSPC, "write").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(EROFS, "write").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(EISDIR, "read").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrnoStatus(EIO, "write").code(), absl::StatusCode::kUnknown);
}

TEST(CheckDeathTest, PrintsPlaceConditionAndMessage) {
  const int index = 7;
  EXPECT_DEATH(HONE_CHECK(index < 5) << "index " << index,
               "status_test.cc:[0-9]+: check failed: index < 5: index 7");
}

TEST(Check, EvaluatesTheMessageOnlyOnFailure) {
  int evaluated = 0;
  auto message = [&] { return ++evaluated; };
  HONE_CHECK(true) << message();
  EXPECT_EQ(evaluated, 0);
}

TEST(ResultDeathTest, ReadingTheValueOfAnErrorSaysWhichError) {
  EXPECT_DEATH(static_cast<void>(*RuntimeName(0)), "NOT_FOUND: no such id");
}

}  // namespace
}  // namespace hone
