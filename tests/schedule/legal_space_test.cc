#include <fmt/format.h>

#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "ir/cpu/cpu_target.h"
#include "ir/narrow_target.h"
#include "schedule/space.h"
#include "tests/schedule/nest_check.h"

// What a rule offers must be legal: on batches, large images and long sequences as well, which no
// model of the other tests has.
namespace hone::schedule {
namespace {

constexpr double kMostIllegal = 0.02;
constexpr int kPointsPerSketch = 10;

struct Case {
  std::string name, text;
};

std::string Padded(int64_t n, int64_t h, int64_t w, int64_t c, int64_t pad) {
  return fmt::format(
      "s0: f32[{0},{1},{2},{3}] = select(i1 >= {4} & i1 < {5} & i2 >= {4} & i2 < {6}, "
      "x0[i0, i1 - {4}, i2 - {4}, i3], 0.0)\n",
      n, h + 2 * pad, w + 2 * pad, c, pad, h + pad, w + pad);
}

/// k×k in NHWC with bias and ReLU; of groups with as many channels each.
Case Convolution(int64_t n, int64_t size, int64_t from, int64_t to, int64_t k, int64_t stride = 1,
                 int64_t group = 0) {
  const int64_t out = (size - 1) / stride + 1, depth = group == 0 ? from : group;
  const std::string channel = group == 0   ? "r2"
                              : group == 1 ? "i3 + r2"
                                           : fmt::format("i3 // {0} * {0} + r2", group);
  const std::string type = fmt::format("f32[{},{},{},{}]", n, out, out, to);
  return {fmt::format("convolution {}x{}x{} {}->{} {}x{}", n, size, size, from, to, k, k),
          fmt::format("workload 1\nx0: f32[{0},{1},{1},{2}] input range(-1,1)\n"
                      "x1: f32[{3},{4},{5},{5}] constant\nx2: f32[{3}] constant\n{6}"
                      "s1: {7} = sum[r0:{5},r1:{5},r2:{4}] (s0[i0, i1 * {8} + r0, i2 * {8} + r1, "
                      "{9}] * x1[i3, r2, r0, r1])\n"
                      "s2: {7} output = max(s1[i0, i1, i2, i3] + x2[i3], 0.0)\n",
                      n, size, from, to, depth, k, Padded(n, size, size, from, k / 2), type, stride,
                      channel)};
}

Case Pooling(int64_t n, int64_t size, int64_t channels) {
  return {fmt::format("pooling {}x{}x{} {}", n, size, size, channels),
          fmt::format("workload 1\nx0: f32[{0},{1},{1},{2}] input range(-1,1)\n{3}"
                      "s1: f32[{0},{4},{4},{2}] output = max[r0:3,r1:3] "
                      "(s0[i0, i1 * 2 + r0, i2 * 2 + r1, i3])\n",
                      n, size, channels, Padded(n, size, size, channels, 1), (size - 1) / 2 + 1)};
}

Case Product(int64_t n, int64_t rows, int64_t columns, int64_t depth) {
  return {fmt::format("product {}x{}x{}x{}", n, rows, columns, depth),
          fmt::format("workload 1\nx0: f32[{0},{1},{3}] input range(-1,1)\n"
                      "x1: f32[{3},{2}] constant\n"
                      "s0: f32[{0},{1},{2}] output = sum[r0:{3}] (x0[i0, i1, r0] * x1[r0, i2])\n",
                      n, rows, columns, depth)};
}

Case Softmax(int64_t n, int64_t rows, int64_t columns) {
  return {fmt::format("softmax {}x{}x{}", n, rows, columns),
          fmt::format("workload 1\nx0: f32[{0},{1},{2}] input range(-4,4)\n"
                      "s0: f32[{0},{1}] = max[r0:{2}] (x0[i0, i1, r0])\n"
                      "s1: f32[{0},{1},{2}] = exp(x0[i0, i1, i2] - s0[i0, i1])\n"
                      "s2: f32[{0},{1}] = sum[r0:{2}] (s1[i0, i1, r0])\n"
                      "s3: f32[{0},{1},{2}] output = s1[i0, i1, i2] / s2[i0, i1]\n",
                      n, rows, columns)};
}

/// Several sequences; rows stand before heads, as the compiler leaves them.
Case Attention(int64_t n, int64_t heads, int64_t tokens) {
  return {
      fmt::format("attention {}x{}x{}x64", n, heads, tokens),
      fmt::format("workload 1\nx0: f32[{1},{0},64] input range(-1,1)\n"
                  "x1: f32[{1},{0},64] input range(-1,1)\nx2: f32[{1},{0},64] input range(-1,1)\n"
                  "s0: f32[{0},{1},{1}] = sum[r0:64] (x0[i1, i0, r0] * x1[i2, i0, r0])\n"
                  "s1: f32[{0},{1},{1}] = s0[i0, i1, i2] * 0.125\n"
                  "s2: f32[{0},{1}] = max[r0:{1}] (s1[i0, i1, r0])\n"
                  "s3: f32[{0},{1},{1}] = exp(s1[i0, i1, i2] - s2[i0, i1])\n"
                  "s4: f32[{0},{1}] = sum[r0:{1}] (s3[i0, i1, r0])\n"
                  "s5: f32[{0},{1},{1}] = s3[i0, i1, i2] * (1.0 / s4[i0, i1])\n"
                  "s6: f32[{0},{1},64] = sum[r0:{1}] (s5[i0, i1, r0] * x2[r0, i0, i2])\n"
                  "s7: f32[{1},{0},64] output = s6[i1, i0, i2]\n",
                  n * heads, tokens)};
}

Case Map(int64_t n, int64_t rows, int64_t columns) {
  return {fmt::format("map {}x{}x{}", n, rows, columns),
          fmt::format("workload 1\nx0: f32[{0},{1},{2}] input range(-1,1)\n"
                      "s0: f32[{0},{2},{1}] output = tanh(x0[i0, i2, i1]) * 2.0\n",
                      n, rows, columns)};
}

/// A plain recurrent cell: `steps` × `n` × `units`.
Case Recurrence(int64_t steps, int64_t n, int64_t units) {
  return {fmt::format("recurrence {}x{}x{}", steps, n, units),
          fmt::format("workload 1\nx0: f32[{0},{1},{2}] input range(-1,1)\n"
                      "x1: f32[{2},{2}] constant\n"
                      "s0: f32[{0},{1},{2}] scan 0 = sum[r0:{2}] (select(i0 >= 1, s1[i0 - 1, i1, "
                      "r0], 0.0) * x1[r0, i2])\n"
                      "s1: f32[{0},{1},{2}] output scan 0 = tanh(s0[i0, i1, i2] + x0[i0, i1, "
                      "i2])\n",
                      steps, n, units)};
}

/// An inverted residual: expand, depthwise, project.
Case Residual(int64_t n, int64_t size, int64_t channels, int64_t wide) {
  return {fmt::format("residual {}x{}x{} {} {}", n, size, size, channels, wide),
          fmt::format("workload 1\nx0: f32[{0},{1},{1},{2}] input range(-1,1)\n"
                      "x1: f32[{3},{2}] constant\nx2: f32[{3},3,3] constant\n"
                      "x3: f32[{2},{3}] constant\n"
                      "s0: f32[{0},{1},{1},{3}] = sum[r0:{2}] (x0[i0, i1, i2, r0] * x1[i3, r0])\n"
                      "s1: f32[{0},{1},{1},{3}] = max(s0[i0, i1, i2, i3], 0.0)\n"
                      "s2: f32[{0},{4},{4},{3}] = select(i1 >= 1 & i1 < {5} & i2 >= 1 & i2 < {5}, "
                      "s1[i0, i1 - 1, i2 - 1, i3], 0.0)\n"
                      "s3: f32[{0},{1},{1},{3}] = sum[r0:3,r1:3] (s2[i0, i1 + r0, i2 + r1, i3] * "
                      "x2[i3, r0, r1])\n"
                      "s4: f32[{0},{1},{1},{3}] = max(s3[i0, i1, i2, i3], 0.0)\n"
                      "s5: f32[{0},{1},{1},{2}] = sum[r0:{3}] (s4[i0, i1, i2, r0] * x3[i3, r0])\n"
                      "s6: f32[{0},{1},{1},{2}] output = s5[i0, i1, i2, i3] + x0[i0, i1, i2, i3]\n",
                      n, size, channels, wide, size + 2, size + 1)};
}

/// Bytes times bytes, and bf16, which tiles and dot products multiply.
Case Narrow(const std::string& type, int64_t n, int64_t rows, int64_t columns, int64_t depth) {
  const std::string sum = type == "bf16" ? "f32" : "i32";
  return {fmt::format("{} {}x{}x{}x{}", type, n, rows, columns, depth),
          fmt::format("workload 1\nx0: {5}[{0},{1},{3}] input range(0,100)\n"
                      "x1: {5}[{3},{2}] constant\n"
                      "s0: {4}[{0},{1},{2}] = sum[r0:{3}] ({4}(x0[i0, i1, r0]) * {4}(x1[r0, i2]))\n"
                      "s1: f32[{0},{1},{2}] output = max(f32(s0[i0, i1, i2]), 0.0)\n",
                      n, rows, columns, depth, sum, type)};
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const int64_t n : {2, 3, 8}) {
    cases.push_back(Convolution(n, 14, 48, 80, 3));
    cases.push_back(Convolution(n, 7, 64, 40, 3));
    cases.push_back(Convolution(n, 28, 24, 40, 3, 2));
    cases.push_back(Convolution(n, 14, 48, 96, 1));
    cases.push_back(Convolution(n, 14, 40, 40, 3, 1, 1));
    cases.push_back(Convolution(n, 14, 48, 48, 3, 1, 8));
    cases.push_back(Pooling(n, 28, 40));
    cases.push_back(Product(n, 64, 200, 96));
    cases.push_back(Narrow("i8", n, 49, 200, 96));
    cases.push_back(Narrow("bf16", n, 197, 64, 384));
    cases.push_back(Product(n, 1, 200, 512));
    cases.push_back(Softmax(n, 12, 197));
    cases.push_back(Attention(n, 4, 64));
    cases.push_back(Map(n, 33, 70));
    cases.push_back(Recurrence(16, n, 72));
    cases.push_back(Residual(n, 14, 24, 96));
  }
  // Large images, long sequences.
  cases.push_back(Convolution(1, 512, 64, 64, 3));
  cases.push_back(Convolution(2, 448, 3, 32, 3, 2));
  cases.push_back(Convolution(1, 448, 32, 32, 3, 1, 1));
  cases.push_back(Convolution(1, 56, 64, 64, 31, 1, 1));
  cases.push_back(Pooling(1, 448, 64));
  cases.push_back(Residual(1, 224, 24, 144));
  cases.push_back(Product(1, 1500, 1536, 384));
  cases.push_back(Softmax(6, 1500, 1500));
  cases.push_back(Attention(1, 12, 2048));
  cases.push_back(Attention(2, 6, 1500));
  cases.push_back(Map(1, 896, 896));
  cases.push_back(Recurrence(1024, 1, 256));
  return cases;
}

/// Points of one Sketch over all cases.
struct Tally {
  int points = 0, illegal = 0;
  std::string first;  ///< case, target, why
};

void TrySketches(const Case& c, const Space& space, Random* random,
                 std::map<std::string, Tally>* tallies) {
  uint64_t begin = 0;
  for (const Sketch& sketch : space.sketches()) {
    std::set<uint64_t> ids;
    for (int k = 0; k < kPointsPerSketch; ++k) {
      const uint64_t id = begin + random->Below(sketch.Product());
      if (space.Admits(id)) ids.insert(id);
    }
    begin += sketch.Product();
    for (const uint64_t id : ids) {
      Tally& tally = (*tallies)[sketch.name];
      ++tally.points;
      const auto trace = space.TraceOf(id);
      absl::Status status = trace.status();
      if (trace.ok())
        status = LowerTrace(space.workload(), *trace, space.target(), {}, "k").status();
      if (status.ok() || tally.illegal++ > 0) continue;
      tally.first = fmt::format("{} for {}, point {}: {}", c.name, space.target().text, id,
                                std::string(status.message()));
    }
  }
}

TEST(LegalSpace, WhatEveryRuleOffersIsLegal) {
  constexpr uint64_t kSeed = 26;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  std::map<std::string, Tally> tallies;
  for (const Case& c : Cases()) {
    const ir::Workload workload = WorkloadOf(c.text);
    for (const char* target :
         {"cpu:avx2,threads=2", "cpu:avx512,threads=3", "cpu:avx512+vnni+amx,threads=2"}) {
      // Without narrow numbers it is plain AVX-512.
      const ir::Target used = ir::NarrowedTo(TargetOf(target), workload);
      if (TargetOf(target).As<ir::CpuTarget>().amx && !used.As<ir::CpuTarget>().amx) continue;
      TrySketches(c, Space(workload, TargetOf(target), ir::AccuracyClass::kDefault), &random,
                  &tallies);
    }
  }
  for (const auto& [sketch, tally] : tallies) {
    std::cout << "  " << sketch << ": " << tally.illegal << " of " << tally.points << " illegal\n";
    EXPECT_LE(tally.illegal, kMostIllegal * tally.points) << sketch << ": " << tally.first;
  }
  for (const char* sketch :
       {"attention/lanes", "attention/online", "attention/rows", "direct", "direct/guard",
        "direct/peeled", "direct/root", "direct/tile", "map", "rows", "scan", "tiles",
        "winograd2/one_phase", "winograd2/three_phases", "winograd4/one_phase",
        "winograd4/three_phases"}) {
    EXPECT_GE(tallies[sketch].points, 20) << sketch;
  }
}

}  // namespace
}  // namespace hone::schedule
