#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/hash128.h"
#include "base/core/random.h"
#include "ir/text.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/space.h"
#include "schedule/trace_query.h"
#include "tests/schedule/nest_check.h"

// What the Winograd rule makes of one image and of several.
namespace hone::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char* const kTargets[] = {"cpu:avx2,threads=2", "cpu:avx512,threads=3"};

struct Shape {
  int64_t images, height, width, in, out;
  bool epilogue;
};

/// A padded 3×3 convolution in NHWC; with an epilogue that adds a tensor, or alone.
ir::Workload Convolution(const Shape& s) {
  const std::string out = fmt::format("f32[{},{},{},{}]", s.images, s.height, s.width, s.out);
  return WorkloadOf(fmt::format(
      "workload 1\nx0: f32[{0},{1},{2},{3}] input range(-1,1)\nx1: f32[{4},{3},3,3] constant\n"
      "{7}s0: f32[{0},{5},{6},{3}] = select(i1 >= 1 & i1 < {1} + 1 & i2 >= 1 & i2 < {2} + 1, "
      "x0[i0, i1 - 1, i2 - 1, i3], 0.0)\n"
      "s1: {8} = sum[r0:3,r1:3,r2:{3}] (s0[i0, i1 + r0, i2 + r1, r2] * x1[i3, r2, r0, r1])\n{9}",
      s.images, s.height, s.width, s.in, s.out, s.height + 2, s.width + 2,
      s.epilogue ? "x2: " + out + " input range(-1,1)\n" : "", s.epilogue ? out : out + " output",
      s.epilogue ? "s2: " + out + " output = max(s1[i0, i1, i2, i3] + x2[i0, i1, i2, i3], 0.0)\n"
                 : ""));
}

const std::string& SketchOf(const Space& space, uint64_t id) {
  return space.PointOf(id).sketch.name;
}

bool IsWinograd(const Space& space, uint64_t id) {
  return SketchOf(space, id).starts_with("winograd");
}

bool IsOnePhase(const Space& space, uint64_t id) {
  return SketchOf(space, id).ends_with("/one_phase");
}

std::vector<uint64_t> WinogradPoints(const Space& space) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < space.product(); ++id) {
    if (space.Admits(id) && IsWinograd(space, id)) ids.push_back(id);
  }
  return ids;
}

TEST(WinogradRule, SeveralImagesEqualTheInterpreter) {
  constexpr uint64_t kSeed = 2026;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  for (const Shape& shape : {Shape{2, 9, 6, 3, 33, true}, Shape{3, 7, 7, 4, 20, false},
                             Shape{8, 3, 5, 3, 17, true}, Shape{2, 5, 4, 6, 16, false}}) {
    const ir::Workload workload = Convolution(shape);
    std::vector<ir::InterpretedTensor> expected;
    for (const char* target : kTargets) {
      const Space space(workload, TargetOf(target), ir::AccuracyClass::kDefault);
      std::vector<uint64_t> ids = WinogradPoints(space);
      ASSERT_FALSE(ids.empty());
      for (int k = 0; k < 8; ++k) {
        const uint64_t id = random.Pick(ids);
        const auto trace = space.TraceOf(id);
        ASSERT_TRUE(trace.ok()) << trace.status();
        const CheckResult result = CheckTrace(
            workload, *trace,
            {.target = target, .compile = k % 3 == 0, .slack = 2e-5, .expected = &expected});
        ASSERT_EQ(result.agreement, Agreement::kEqual)
            << shape.images << " images, " << target << ", " << SketchOf(space, id) << ": "
            << result.why << "\n"
            << ToText(*trace);
      }
    }
  }
}

// Every thread has a share of the images' tile rows, in each phase.
TEST(WinogradRule, ThreadsShareImagesAndTileRows) {
  const ir::Workload workload = Convolution({3, 9, 6, 5, 33, true});
  const Space space(workload, TargetOf(kTargets[0]), ir::AccuracyClass::kDefault);
  for (const uint64_t id : WinogradPoints(space)) {
    const std::string text = ToText(*space.TraceOf(id));
    EXPECT_THAT(text, HasSubstr("s2.f0 = fuse(s2.i0, s2.i1.0)\n")) << SketchOf(space, id);
    EXPECT_THAT(text, HasSubstr("parallel(s2.f0, 2)\n")) << SketchOf(space, id);
    if (IsOnePhase(space, id)) continue;
    EXPECT_THAT(text, HasSubstr("s4.f0 = fuse(s4.i2, s4.i3)\n"));
    EXPECT_THAT(text, HasSubstr("parallel(s4.f0, 2)\n"));
    EXPECT_THAT(text, HasSubstr("s7.f1 = fuse(s7.f0, s7.i4)\n")) << "the product's rows";
  }
}

TEST(WinogradRule, PointsOfSeveralImagesAreFoundAgainAndCarriedOver) {
  const Space one(Convolution({1, 9, 6, 5, 33, true}), TargetOf(kTargets[1]),
                  ir::AccuracyClass::kDefault);
  const Space eight(Convolution({8, 9, 6, 5, 33, true}), TargetOf(kTargets[1]),
                    ir::AccuracyClass::kDefault);
  const std::vector<uint64_t> ids = WinogradPoints(eight);
  for (size_t k = 0; k < ids.size(); k += 1 + ids.size() / 5)
    EXPECT_EQ(eight.Locate(ToText(*eight.TraceOf(ids[k]))), ids[k]) << SketchOf(eight, ids[k]);
  for (const uint64_t id : WinogradPoints(one)) {
    const auto near = eight.Nearest(one, id);
    ASSERT_TRUE(near.has_value()) << SketchOf(one, id);
    EXPECT_EQ(SketchOf(eight, *near), SketchOf(one, id));
    EXPECT_TRUE(!IsOnePhase(one, id) || eight.ValueOf(*near, "rows") == one.ValueOf(id, "rows"));
  }
}

// What the cost model is told of a point, beside the Stages that the algorithm makes.
TEST(WinogradRule, DescribesTheWorkOfAllImages) {
  for (const Shape& shape : {Shape{1, 9, 6, 5, 33, true}, Shape{3, 14, 11, 4, 20, false}}) {
    const ir::Workload workload = Convolution(shape);
    const Space space(workload, TargetOf(kTargets[0]), ir::AccuracyClass::kDefault);
    for (const uint64_t id : WinogradPoints(space)) {
      SCOPED_TRACE(SketchOf(space, id));
      const Space::Point point = space.PointOf(id);
      TraceWriter writer(workload);
      ASSERT_TRUE(point.sketch.rule->Emit(point.sketch, point.values, writer).ok());
      const Instruction* algorithm = FindInstruction(writer.trace(), "algorithm");
      ASSERT_NE(algorithm, nullptr);
      const std::string name = fmt::format("s{}", std::atoi(algorithm->result.c_str() + 1) + 4);
      const auto& stages = writer.workload().stages;
      const auto product = std::find_if(stages.begin(), stages.end(),
                                        [&](const ir::Stage& s) { return s.name == name; });
      ASSERT_NE(product, stages.end());
      double multiply_adds = 1;
      for (int a = 0; a < product->num_axes(); ++a)
        multiply_adds *= static_cast<double>(product->Extent(a));
      CpuFacts facts;
      WinogradSketches().Describe(point.sketch, point.values, &facts);
      EXPECT_DOUBLE_EQ(facts.multiply_adds, multiply_adds);
      const double alpha2 = (facts.winograd + 2) * (facts.winograd + 2);
      const auto tiles = [&](int64_t n) { return (n + facts.winograd - 1) / facts.winograd; };
      const int64_t rows = tiles(shape.width), images = shape.images;
      if (!facts.one_phase) {
        EXPECT_EQ(facts.work_rows, static_cast<double>(images * tiles(shape.height) * rows));
        EXPECT_EQ(facts.work_outer, alpha2);
        continue;
      }
      const int64_t block = space.ValueOf(id, "tile_rows");
      EXPECT_EQ(facts.work_rows, static_cast<double>(block * rows));
      EXPECT_EQ(facts.shares,
                static_cast<double>(images * ((tiles(shape.height) + block - 1) / block)));
      EXPECT_EQ(facts.work_outer, alpha2 * facts.shares);
    }
  }
}

// Logs hold Traces of one image: the rule must still write these, byte by byte.
TEST(WinogradRule, OneImageHasTheTracesOfStoredLogs) {
  std::string all;
  for (const bool epilogue : {true, false}) {
    const ir::Workload workload = Convolution({1, 9, 6, 5, 33, epilogue});
    for (const char* target : kTargets) {
      const Space space(workload, TargetOf(target), ir::AccuracyClass::kDefault);
      for (const uint64_t id : WinogradPoints(space)) all += ToText(*space.TraceOf(id));
    }
  }
  EXPECT_EQ(HashBytes(all).ToHex(), "ac3d500540683c914c42b5b4125ca93c");
}

std::string DefaultSketchOf(const Shape& shape, const std::string& target) {
  const Space space(Convolution(shape), TargetOf(target), ir::AccuracyClass::kStrict);
  return SketchOf(space, space.DefaultId());
}

TEST(WinogradRule, TheDefaultIsTheSmallTileWhereThatGains) {
  for (const std::string isa : {"cpu:avx2", "cpu:avx512"}) {
    SCOPED_TRACE(isa);
    const std::string two = isa + ",threads=2";
    EXPECT_EQ(DefaultSketchOf({1, 56, 56, 64, 64, true}, two), "winograd2/one_phase");
    EXPECT_EQ(DefaultSketchOf({1, 55, 55, 16, 64, false}, two), "winograd2/one_phase");
    EXPECT_EQ(DefaultSketchOf({4, 14, 14, 256, 256, true}, two), "winograd2/one_phase");
    EXPECT_THAT(DefaultSketchOf({1, 7, 7, 512, 512, true}, two), HasSubstr("direct"))
        << "its weights are most of what is read";
    EXPECT_THAT(DefaultSketchOf({1, 56, 56, 8, 64, true}, two), HasSubstr("direct"));
    EXPECT_THAT(DefaultSketchOf({1, 56, 56, 64, 64, true}, isa + ",threads=64"),
                HasSubstr("direct"))
        << "28 blocks are no even shares of 64 threads";
  }
}

TEST(WinogradRule, TheDefaultEqualsTheInterpreterAndTheDirectOneWhereWeightsAreComputed) {
  const std::string text = ir::ToText(Convolution({2, 15, 14, 16, 20, true}));
  for (const char* target : kTargets)
    EXPECT_THAT(CheckedDefaultText(text, target), HasSubstr("winograd, 2"));
  std::string computed = text;
  computed.replace(computed.find(" constant"), 9, " input range(-1,1)");
  for (const char* target : kTargets)
    EXPECT_THAT(CheckedDefaultText(computed, target), Not(HasSubstr("winograd")));
}

}  // namespace
}  // namespace hone::schedule
