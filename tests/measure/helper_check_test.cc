#include "measure/helper_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/test_paths.h"

namespace hone::measure {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class HelperCheckTest : public ::testing::Test {
 protected:
  HelperCheckTest() {
    const std::string programs = hone::testing::BuildDir() + "/libexec/hone/";
    builder_.program = programs + "hone-builder";
    runner_.program = programs + "hone-runner";
  }

  void ExpectUnusable(const std::string& program, const std::string& why) {
    const absl::Status status = CheckHelpers(builder_, runner_, clock_);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(program), HasSubstr(why), HasSubstr("hone doctor")));
  }

  SystemMonotonicClock clock_;
  BuilderOptions builder_;
  RunnerOptions runner_;
};

TEST_F(HelperCheckTest, ThoseOfThisBuildWork) {
  const absl::Status status = CheckHelpers(builder_, runner_, clock_);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(HelperCheckTest, AMissingOneIsNamed) {
  runner_.program = "/nowhere/hone-runner";
  ExpectUnusable("hone-runner", "/nowhere/hone-runner");
  builder_.program = "/nowhere/hone-builder";
  ExpectUnusable("hone-builder", "/nowhere/hone-builder");
}

TEST_F(HelperCheckTest, OneThatIsAnotherProgramIsFoundOut) {
  runner_.program = "/bin/false";
  ExpectUnusable("hone-runner", "exit code 1");
  builder_.program = "/bin/echo";
  ExpectUnusable("hone-builder", "broke off");
}

}  // namespace
}  // namespace hone::measure
