#include "bench/farm/farm_tasks.h"

#include "fmt/format.h"

namespace hone::bench {
namespace {

std::string Product(int m, int n, int k) {
  return fmt::format(
      "workload 1\n"
      "x0: f32[{0},{2}] input range(-1,1)\n"
      "x1: f32[{2},{1}] constant\n"
      "s0: f32[{0},{1}] output = sum[r0:{2}] (x0[i0, r0] * x1[r0, i1])\n",
      m, n, k);
}

/// 3×3, stride 1, padding 1, with bias and relu.
std::string Convolution3(int channels, int size) {
  return fmt::format(
      "workload 1\n"
      "x0: f32[1,{1},{1},{0}] input range(-1,1)\n"
      "x1: f32[{0},{0},3,3] constant\n"
      "x2: f32[{0}] constant\n"
      "s0: f32[1,{2},{2},{0}] = select(i1 - 1 >= 0 & i1 - 1 < {1} & (i2 - 1 >= 0 & i2 - 1 "
      "< {1}), x0[0, i1 - 1, i2 - 1, i3], 0.0)\n"
      "s1: f32[1,{1},{1},{0}] = sum[r0:3,r1:3,r2:{0}] (s0[0, i1 + r0, i2 + r1, r2] * "
      "x1[i3, r2, r0, r1])\n"
      "s2: f32[1,{1},{1},{0}] = s1[i0, i1, i2, i3] + x2[i3]\n"
      "s3: f32[1,{1},{1},{0}] output = max(s2[i0, i1, i2, i3], 0.0)\n",
      channels, size, size + 2);
}

/// 1×1 with bias and relu.
std::string Convolution1(int from, int to, int size) {
  return fmt::format(
      "workload 1\n"
      "x0: f32[1,{2},{2},{0}] input range(-1,1)\n"
      "x1: f32[{1},{0},1,1] constant\n"
      "x2: f32[{1}] constant\n"
      "s0: f32[1,{2},{2},{1}] = sum[r0:{0}] (x0[0, i1, i2, r0] * x1[i3, r0, 0, 0])\n"
      "s1: f32[1,{2},{2},{1}] = s0[i0, i1, i2, i3] + x2[i3]\n"
      "s2: f32[1,{2},{2},{1}] output = max(s1[i0, i1, i2, i3], 0.0)\n",
      from, to, size);
}

}  // namespace

std::vector<std::string> FarmTargets() {
  std::vector<std::string> targets;
  for (const int threads : {1, 2, 4, 8}) {
    for (const char* isa : {"avx512", "avx2"}) {
      targets.push_back(fmt::format("cpu:{},threads={}", isa, threads));
    }
  }
  return targets;
}

std::vector<proto::TaskSpec> FarmTasks(int count) {
  std::vector<proto::TaskSpec> tasks;
  for (int i = 0; i < count; ++i) {
    const int step = i / 3;
    const int channels = 64 + 32 * (step % 8), size = 14 + 7 * (step / 8);
    std::string text = i % 3 == 0   ? Product(128 + 32 * step, 256 + 64 * (step % 8), 512)
                       : i % 3 == 1 ? Convolution3(channels, size)
                                    : Convolution1(channels, 2 * channels, size);
    tasks.push_back({.workload = std::move(text),
                     .name = fmt::format("task {}", i),
                     .count = 1 + i % 4,
                     .flop = 1e9});
  }
  return tasks;
}

}  // namespace hone::bench
