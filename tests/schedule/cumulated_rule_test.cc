#include <fmt/format.h>

#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/space.h"
#include "tests/schedule/nest_check.h"

namespace hone::schedule {
namespace {

const char* const kTargets[] = {"cpu:avx2,threads=2", "cpu:avx512,threads=3"};

/// Sums along the first axis of `shape` ("7,3,40").
ir::Workload Sums(const std::string& shape, int axes) {
  std::string before = "s0[i0 - 1", here = "x0[i0";
  for (int a = 1; a < axes; ++a) {
    before += fmt::format(", i{}", a);
    here += fmt::format(", i{}", a);
  }
  return WorkloadOf(
      fmt::format("workload 1\nx0: f32[{0}] input range(-1,1)\n"
                  "s0: f32[{0}] output scan 0 = select(i0 >= 1, {1}], 0.0) + {2}]\n",
                  shape, before, here));
}

std::vector<uint64_t> PointsOf(const Space& space) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (space.PointOf(id).sketch.rule == &CumulatedSketches()) ids.push_back(id);
  }
  return ids;
}

TEST(CumulatedRule, EveryPointEqualsTheInterpreterAndIsReadAgain) {
  constexpr uint64_t kSeed = 2207;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  const std::pair<const char*, int> shapes[] = {
      {"9,40", 2}, {"5,3,70", 3}, {"17,5", 2}, {"16,129", 2}};
  for (const auto& [shape, axes] : shapes) {
    const ir::Workload workload = Sums(shape, axes);
    std::vector<ir::InterpretedTensor> expected;
    for (const char* target : kTargets) {
      const Space space(workload, TargetOf(target), ir::AccuracyClass::kDefault);
      const std::vector<uint64_t> ids = PointsOf(space);
      ASSERT_GE(ids.size(), 4U) << shape;
      for (const uint64_t id : ids) {
        const Space::Point point = space.PointOf(id);
        SCOPED_TRACE(space.ValuesText(id) + " of " + shape + " for " + target);
        const auto trace = space.TraceOf(id);
        ASSERT_TRUE(trace.ok()) << trace.status();
        const auto read = point.sketch.rule->Read(point.sketch, *trace);
        ASSERT_TRUE(read.ok()) << read.status();
        EXPECT_EQ(*read, point.values);
        const CheckResult result =
            CheckTrace(workload, *trace,
                       {.target = target, .compile = random.Chance(0.2), .expected = &expected});
        ASSERT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(*trace);
      }
    }
  }
}

TEST(CumulatedRule, LeavesTheDefaultAndRecurrencesWithAProductAlone) {
  const Space sums(Sums("9,40", 2), TargetOf(kTargets[0]), ir::AccuracyClass::kDefault);
  EXPECT_EQ(sums.PointOf(sums.DefaultId()).sketch.name, "scan");
  const Space lines(Sums("400", 1), TargetOf(kTargets[0]), ir::AccuracyClass::kDefault);
  EXPECT_TRUE(PointsOf(lines).empty()) << "there is no axis for vectors";
  const Space recurrence(
      WorkloadOf("workload 1\nx0: f32[3,2,16] input range(-1,1)\nx1: f32[16,16] constant\n"
                 "s0: f32[3,2,16] scan 0 = sum[r0:16] (select(i0 >= 1, s1[i0 - 1, i1, r0], 0.0) * "
                 "x1[i2, r0])\ns1: f32[3,2,16] output scan 0 = tanh(x0[i0, i1, i2] + "
                 "s0[i0, i1, i2])\n"),
      TargetOf(kTargets[0]), ir::AccuracyClass::kDefault);
  EXPECT_TRUE(PointsOf(recurrence).empty());
}

}  // namespace
}  // namespace hone::schedule
