#include <array>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "costmodel/features.h"
#include "costmodel/xgboost_model.h"
#include "ir/kind_facts.h"
#include "ir/per_kind.h"
#include "ir/text.h"
#include "measure/device.h"
#include "measure/device_probe.h"
#include "proto/probed_rates.h"
#include "schedule/space.h"
#include "server/device_match.h"
#include "tests/kinds/abacus.h"

// A second kind of device goes through the floors; no file but tests/kinds/ knows it.
namespace hone {
namespace {

constexpr char kProduct[] =
    "workload 1\n"
    "x0: f32[48,64] input range(-1,1)\n"
    "x1: f32[64,96] constant\n"
    "s0: f32[48,96] output = sum[r0:64] (x0[i0, r0] * x1[r0, i1])\n";

TEST(Kinds, TheTextOfATargetChoosesItsKind) {
  const ir::Target target = abacus::TargetOf("abacus:rods=8");
  EXPECT_EQ(target.kind, "abacus");
  EXPECT_EQ(target.family, "abacus");
  EXPECT_EQ(target.threads, 1);
  EXPECT_EQ(ir::ResolveNative("abacus:native", 4), "abacus:rods=13");
  ir::Target other;
  std::string why;
  EXPECT_FALSE(ir::ParseTarget("abacus:rods=99", &other, &why));
  EXPECT_EQ(why,
            "target 'abacus:rods=99': rods must be a number from 1 to 64; accepted: "
            "abacus:rods=1..64");
  EXPECT_FALSE(ir::ParseTarget("quipu:cords=1", &other, &why));
  EXPECT_NE(why.find("cpu:avx2|avx512"), std::string::npos) << why;
  EXPECT_NE(why.find("abacus:rods=1..64"), std::string::npos) << why;
  EXPECT_FALSE(ir::HostCanRun(abacus::TargetOf("abacus:rods=14"), &why));
  EXPECT_EQ(why, "code for abacus:rods=14 needs more rods than the 13 of this host");
}

TEST(Kinds, ADeviceOfAFarmRunsItsOwnKindAlone) {
  abacus::Register();
  proto::DeviceFacts device;
  device.target = "abacus:rods=8";
  device.cores = 1;
  EXPECT_TRUE(server::CanRun(device, "abacus:rods=8"));
  EXPECT_FALSE(server::CanRun(device, "abacus:rods=9"));
  EXPECT_FALSE(server::CanRun(device, "cpu:avx2,threads=1"));
  device.target = "cpu:avx512+vnni+bf16,threads=1";
  EXPECT_FALSE(server::CanRun(device, "abacus:rods=1"));
}

TEST(Kinds, ASpaceHoldsTheSketchesOfItsKind) {
  const auto workload = ir::ParseWorkload(kProduct);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const schedule::Space space(*workload, abacus::TargetOf("abacus:rods=8"),
                              ir::AccuracyClass::kDefault);
  ASSERT_EQ(space.sketches().size(), 1U);
  EXPECT_EQ(space.sketches()[0].name, "blocks");
  EXPECT_EQ(space.product(), 4U);
  EXPECT_EQ(space.DefaultId(), 0U);
  for (uint64_t id = 0; id < space.product(); ++id) {
    const auto trace = space.TraceOf(id);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(space.Locate(schedule::ToText(*trace)), id);
  }
  EXPECT_EQ(schedule::ToText(*space.TraceOf(3)), "split(s0.i1, 8, mask)\nvectorize(s0.i1.1)\n");
  EXPECT_EQ(schedule::ToText(*space.TraceOf(0)), "parallel(s0.i0, 1)\n");
  const costmodel::FeatureExtractor features(space);
  EXPECT_EQ(features.AnalyticSeconds(3), 1.0 / 8);
  EXPECT_EQ(features.Extract(2), (costmodel::FeatureVector{4, 0}));
}

TEST(Kinds, ARooflineIsWhatTheProbesOfItsKindSay) {
  const FakeClock clock;
  const ir::Target target = abacus::TargetOf("abacus:rods=2");
  const auto probes = measure::ProbeDevice(target, clock);
  ASSERT_TRUE(probes.ok()) << probes.status();
  const measure::DeviceRates& here = probes->rates;
  EXPECT_EQ(here.BoundNs({.operations = {4e12}, .bytes = 1}), 2e9);
  EXPECT_EQ(here.BoundNs({.operations = {4e12}, .bytes = 32e12}), 4e9);
  EXPECT_EQ(here.BoundNs({.operations = {0, 12e12}, .bytes = 1}), 2e9)
      << "bytes are thrice as fast";
  EXPECT_EQ(here.BoundNs({.operations = {0, 0, 4e12}, .bytes = 1}), 2e9)
      << "it has no unit for them";
  // The same on a farm, whose worker says what it probed.
  const measure::DeviceRates there =
      proto::RatesOf(proto::ProbesOf(*probes, target, 1), abacus::TargetOf("abacus:rods=2"));
  for (const ir::WorkloadCost& cost :
       {ir::WorkloadCost{.operations = {4e12}, .bytes = 1},
        ir::WorkloadCost{.operations = {1e12, 12e12}, .bytes = 1}, ir::WorkloadCost{.bytes = 32e12},
        ir::WorkloadCost{.bytes = 1e6}}) {
    EXPECT_EQ(there.BoundNs(cost), here.BoundNs(cost));
  }
}

TEST(Kinds, EachCountsItsOwnVersions) {
  const ir::Target target = abacus::TargetOf("abacus:rods=2");
  EXPECT_EQ(ir::VersionsOf(target.text).measurement_policy, 7);
  EXPECT_EQ(ir::VersionsOf("cpu:avx2,threads=1").measurement_policy, 1);
  EXPECT_EQ(measure::DeviceClassFor(target), "abacus-8:rods13");
  EXPECT_FALSE(measure::DescribeDevice("abacus:10").ok());
  costmodel::TrainingTask task;
  for (int i = 1; i <= 32; ++i) {
    task.features.push_back(std::array{static_cast<float>(i), 0.0F});
    task.labels.push_back(1.0F / static_cast<float>(i));
  }
  const auto bytes = costmodel::XgboostModel::Train({task}, 1, target.text);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(bytes->starts_with("hone-trees 9 4 abacus\n")) << bytes->substr(0, 30);
  EXPECT_TRUE(costmodel::XgboostModel::Load(*bytes, target.text).ok());
  EXPECT_EQ(costmodel::XgboostModel::Load(*bytes).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Kinds, ExtensionsAreTheKindsOwn) {
  EXPECT_TRUE(ir::SameButExtensions("cpu:avx2+vnni,threads=1", "cpu:avx2,threads=1"));
  abacus::Register();
  EXPECT_FALSE(ir::SameButExtensions("abacus:rods=2", "abacus:rods=3"));
  const auto all = [](ir::DType) { return true; };
  const ir::Target target = abacus::TargetOf("abacus:rods=2");
  EXPECT_EQ(ir::Narrowed(target, all).text, target.text);
}

TEST(Kinds, WhatAFloorDoesNotKnowIsNamed) {
  const ir::PerKind<int> nothing({});
  EXPECT_EQ(nothing.Find("abacus"), nullptr);
  const ir::Target target = abacus::TargetOf("abacus:rods=1");
  EXPECT_DEATH(nothing.Of(target), "nothing here is made for targets like 'abacus:rods=1'");
}

}  // namespace
}  // namespace hone
