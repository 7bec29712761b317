#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/space.h"
#include "tests/schedule/nest_check.h"

// Products by pruned weights: what is known to be zero is not computed.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char* const kTargets[] = {"cpu:avx2,threads=2", "cpu:avx512,threads=3"};

struct Shape {
  int64_t rows, columns, terms;
  std::string eighths;
  int values;
  bool turned = false;    ///< the weights lie [columns, terms]
  bool epilogue = false;  ///< a map with a bias
};

ir::Workload Product(const Shape& s) {
  return WorkloadOf(fmt::format(
      "workload 1\nx0: f32[{0},{2}] input range(-1,1)\n"
      "x1: f32[{3},{4}] constant panels({5},16,[{6}],{7})\n{8}"
      "s0: f32[{0},{1}]{9} = sum[r0:{2}] (x0[i0, r0] * x1[{10}])\n{11}",
      s.rows, s.columns, s.terms, s.turned ? s.columns : s.terms, s.turned ? s.terms : s.columns,
      s.turned ? 0 : 1, s.eighths, s.values,
      s.epilogue ? fmt::format("x2: f32[{}] constant\n", s.columns) : "",
      s.epilogue ? "" : " output", s.turned ? "i1, r0" : "r0, i1",
      s.epilogue ? fmt::format("s1: f32[{},{}] output = max(s0[i0, i1] + x2[i1], 0.0)\n", s.rows,
                               s.columns)
                 : ""));
}

const char* const kFew = "2,3,4,4,5,6,6,9";

std::vector<uint64_t> PointsOf(const Space& space, const std::string& sketch) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (space.Admits(id) && space.PointOf(id).sketch.name.starts_with(sketch)) ids.push_back(id);
  }
  return ids;
}

/// A few points of these Sketches, by the interpreter of loops and as code, equal the interpreter.
void ExpectEqual(const Shape& shape, const char* target, const std::string& sketch,
                 Random* random) {
  const ir::Workload workload = Product(shape);
  const Space space(workload, TargetOf(target), ir::AccuracyClass::kDefault);
  std::vector<uint64_t> ids = PointsOf(space, sketch);
  ASSERT_FALSE(ids.empty());
  random->Shuffle(ids);
  ids.resize(std::min<size_t>(ids.size(), 6));
  std::vector<ir::InterpretedTensor> expected;
  for (const uint64_t id : ids) {
    const auto trace = space.TraceOf(id);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const CheckResult result =
        CheckTrace(workload, *trace, {.target = target, .compile = true, .expected = &expected});
    ASSERT_EQ(result.agreement, Agreement::kEqual)
        << shape.rows << "x" << shape.columns << "x" << shape.terms << ", " << target << ": "
        << result.why << "\n"
        << ToText(*trace);
  }
}

TEST(KeptRule, PointsEqualTheInterpreter) {
  constexpr uint64_t kSeed = 2027;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  for (const Shape& shape : {Shape{33, 40, 70, kFew, 9}, Shape{32, 48, 96, kFew, 4, true, true},
                             Shape{12, 17, 33, "0,0,0,0,0,0,0,32", 20, false, true},
                             Shape{9, 64, 2, "32,32,32,32,32,32,32,32", 32},
                             Shape{24, 33, 40, "0,0,0,0,0,0,0,0", 0, true}}) {
    for (const char* target : kTargets) ExpectEqual(shape, target, "panels", &random);
  }
}

// One row and a few; words of four terms that the terms do not fill; nothing but zeros; no zeros.
TEST(BitmaskRule, PointsEqualTheInterpreter) {
  constexpr uint64_t kSeed = 2028;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  const char* const all = "32,32,32,32,32,32,32,32";
  for (const Shape& shape :
       {Shape{1, 48, 70, all, 9}, Shape{1, 64, 130, all, 20, true, true},
        Shape{3, 40, 33, all, 11, false, true}, Shape{4, 32, 7, all, 32},
        Shape{1, 32, 64, "0,0,0,0,0,0,0,0", 0}, Shape{2, 80, 300, kFew, 5}}) {
    ExpectEqual(shape, kTargets[1], "bitmask", &random);
  }
}

std::string DefaultOf(const Shape& shape) {
  const Space space(Product(shape), TargetOf(kTargets[1]), ir::AccuracyClass::kDefault);
  return space.PointOf(space.DefaultId()).sketch.name;
}

TEST(KeptRule, TheDefaultLeavesOutZerosWhereTheyAreMany) {
  EXPECT_EQ(DefaultOf({64, 64, 64, "6,6,6,7,7,7,8,8", 8}), "panels");
  EXPECT_EQ(DefaultOf({64, 64, 64, "28,28,28,28,28,28,28,28", 24}), "direct");
  EXPECT_EQ(DefaultOf({2, 64, 64, "6,6,6,7,7,7,8,8", 8}), "direct") << "too few rows";
  EXPECT_EQ(DefaultOf({1, 2048, 2048, "32,32,32,32,32,32,32,32", 11}), "bitmask");
  EXPECT_EQ(DefaultOf({1, 2048, 2048, "32,32,32,32,32,32,32,32", 24}), "direct");
  EXPECT_EQ(DefaultOf({1, 64, 64, "32,32,32,32,32,32,32,32", 11}), "direct")
      << "the weights fit the cache";
}

// With batches that stand as an axis of one iteration, as MatMul's of transformers do.
TEST(KeptRule, AnAxisOfOneIterationIsNoHindrance) {
  const ir::Workload workload = WorkloadOf(
      "workload 1\nx0: f32[1,24,64] input range(-1,1)\n"
      "x1: f32[64,32] constant panels(1,16,[6,6,6,7,7,7,8,8],8)\n"
      "s0: f32[1,24,32] output = sum[r0:64] (x0[i0, i1, r0] * x1[r0, i2])\n");
  const Space space(workload, TargetOf(kTargets[1]), ir::AccuracyClass::kDefault);
  const auto trace = space.TraceOf(space.DefaultId());
  ASSERT_TRUE(trace.ok());
  EXPECT_THAT(ToText(*trace), HasSubstr("algorithm(s0, panels, 16)"));
  const CheckResult result =
      CheckTrace(workload, *trace, {.target = kTargets[1], .compile = true});
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
}

// The weights are not copied into panels again while the kernel runs.
TEST(KeptRule, WhatIsMadeOfWeightsIsMadeWhenPackaging) {
  const Space space(Product({64, 64, 64, kFew, 9}), TargetOf(kTargets[1]),
                    ir::AccuracyClass::kDefault);
  for (const uint64_t id : PointsOf(space, "panels")) {
    const auto lowered = LowerTrace(space.workload(), *space.TraceOf(id), TargetOf(kTargets[1]), {},
                                    "k");
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const bool packed = space.PointOf(id).sketch.name == "panels/packed";
    EXPECT_EQ(lowered->nest.phases.size(), packed ? 2U : 1U);
    EXPECT_EQ(lowered->artifact.constants[0].bytes, 0);
  }
}

}  // namespace
}  // namespace hone::schedule
