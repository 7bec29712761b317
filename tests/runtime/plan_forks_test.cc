// The form of a plan for steps that run beside others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <span>

#include "runtime/package.h"
#include "tests/runtime/test_model.h"

namespace hone::runtime::testing {
namespace {

using ::testing::HasSubstr;

TEST(PlanForks, AreKept) {
  TestModel model = MakeTestModel();
  model.package.plan.forks = {{2, {1, 1}}};
  const std::string bytes = *SerializePackage(model.package);
  const auto read = ParsePackage(std::as_bytes(std::span(bytes.data(), bytes.size())));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->plan.forks.size(), 1U);
  EXPECT_EQ(read->plan.forks[0].first, 2);
  EXPECT_THAT(read->plan.forks[0].counts, ::testing::ElementsAre(1, 1));
  EXPECT_EQ(*SerializePackage(*read), bytes);
}

TEST(PlanForks, RulesAreChecked) {
  struct Case {
    const char* message;
    std::function<void(Package&)> breakage;
  };
  const Case cases[] = {
      {"fork 0: 1 branches",
       [](Package& p) {
         p.plan.forks = {{2, {2}}};
       }},
      {"fork 0: 2 branches in steps [3, 5) of 4",
       [](Package& p) {
         p.plan.forks = {{3, {1, 1}}};
       }},
      {"fork 0: 2 branches",
       [](Package& p) {
         p.plan.forks = {{2, {2, 0}}};
       }},
      {"fork 1: 2 branches",
       [](Package& p) {
         p.plan.forks = {{0, {1, 1}}, {1, {1, 1}}};
       }},
      {"fork 0: a loop begins or ends within it",
       [](Package& p) {
         p.plan.forks = {{2, {1, 1}}};
         p.plan.loops = {{0, 3, 1}};
       }},
      {"phase 0 of step 3 does not follow",
       [](Package& p) {
         p.plan.steps[2] = p.plan.steps[3] = p.plan.steps[1];
         p.plan.forks = {{2, {1, 1}}};
         p.plan.joins = {{3, 0}};
       }},
  };
  for (const Case& broken : cases) {
    TestModel model = MakeTestModel();
    broken.breakage(model.package);
    const Status status = SerializePackage(model.package).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << broken.message;
    EXPECT_THAT(status.message(), HasSubstr(broken.message));
  }
}

}  // namespace
}  // namespace hone::runtime::testing
