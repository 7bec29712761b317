#include "bench/kernel_workloads.h"

#include <fmt/format.h>

namespace hone::bench {

std::string ProductText(int m, int n, int k) {
  return fmt::format(
      "workload 1\n"
      "x0: f32[{0},{2}] input range(-1,1)\n"
      "x1: f32[{2},{1}] constant\n"
      "s0: f32[{0},{1}] output = sum[r0:{2}] (x0[i0, r0] * x1[r0, i1])\n",
      m, n, k);
}

std::string Convolution3Text(int channels, int size, int images) {
  return fmt::format(
      "workload 1\n"
      "x0: f32[{3},{1},{1},{0}] input range(-1,1)\n"
      "x1: f32[{0},{0},3,3] constant\n"
      "x2: f32[{0}] constant\n"
      "s0: f32[{3},{2},{2},{0}] = select(i1 - 1 >= 0 & i1 - 1 < {1} & (i2 - 1 >= 0 & i2 - 1 "
      "< {1}), x0[{4}, i1 - 1, i2 - 1, i3], 0.0)\n"
      "s1: f32[{3},{1},{1},{0}] = sum[r0:3,r1:3,r2:{0}] (s0[{4}, i1 + r0, i2 + r1, r2] * "
      "x1[i3, r2, r0, r1])\n"
      "s2: f32[{3},{1},{1},{0}] = s1[i0, i1, i2, i3] + x2[i3]\n"
      "s3: f32[{3},{1},{1},{0}] output = max(s2[i0, i1, i2, i3], 0.0)\n",
      channels, size, size + 2, images, images == 1 ? "0" : "i0");
}

std::string Convolution1Text(int from, int to, int size) {
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

}  // namespace hone::bench
