#include "bench/kernel_cases.h"

#include <fmt/format.h>

#include "bench/kernel_workloads.h"

namespace hone::bench {
namespace {

constexpr double kGemmShare = 0.88, kConvolutionShare = 0.85;

/// Taps of a 3×3 window over a square with padding 1, those in the padding left out.
double Taps3(int size) {
  const double along = 3.0 * size - 2;
  return along * along;
}

KernelCase Gemm(int m, int n, int k) {
  return {fmt::format("gemm_{}_{}_{}", m, n, k), ProductText(m, n, k), 2.0 * m * n * k, kGemmShare};
}

/// 3×3, stride 1, padding 1, with bias and relu.
KernelCase Convolution3(int channels, int size, int images = 1) {
  const std::string batch = images == 1 ? "" : fmt::format("_b{}", images);
  return {fmt::format("conv_{}_{}{}", channels, size, batch),
          Convolution3Text(channels, size, images),
          2.0 * Taps3(size) * channels * channels * images, kConvolutionShare};
}

/// 1×1 with bias and relu.
KernelCase Convolution1(int from, int to, int size) {
  return {fmt::format("conv1_{}_{}", from, to), Convolution1Text(from, to, size),
          2.0 * from * to * size * size, kConvolutionShare};
}

/// 3×3, stride 1, padding 1, with bias and relu.
KernelCase Depthwise(int channels, int size) {
  return {fmt::format("dw_{}_{}", channels, size),
          fmt::format(
              "workload 1\n"
              "x0: f32[1,{1},{1},{0}] input range(-1,1)\n"
              "x1: f32[{0},1,3,3] constant\n"
              "x2: f32[{0}] constant\n"
              "s0: f32[1,{2},{2},{0}] = select(i1 - 1 >= 0 & i1 - 1 < {1} & (i2 - 1 >= 0 & i2 - 1 "
              "< {1}), x0[0, i1 - 1, i2 - 1, i3], 0.0)\n"
              "s1: f32[1,{1},{1},{0}] = sum[r0:3,r1:3] (s0[0, i1 + r0, i2 + r1, i3] * x1[i3, 0, "
              "r0, r1])\n"
              "s2: f32[1,{1},{1},{0}] = s1[i0, i1, i2, i3] + x2[i3]\n"
              "s3: f32[1,{1},{1},{0}] output = max(s2[i0, i1, i2, i3], 0.0)\n",
              channels, size, size + 2),
          2.0 * Taps3(size) * channels};
}

KernelCase Softmax(int rows, int columns) {
  return {fmt::format("softmax_{}_{}", rows, columns),
          fmt::format("workload 1\n"
                      "x0: f32[{0},{1}] input range(-1,1)\n"
                      "s0: f32[{0}] = max[r0:{1}] (x0[i0, r0])\n"
                      "s1: f32[{0},{1}] = exp(x0[i0, i1] - s0[i0])\n"
                      "s2: f32[{0}] = sum[r0:{1}] (s1[i0, r0])\n"
                      "s3: f32[{0},{1}] output = s1[i0, i1] * (1.0 / s2[i0])\n",
                      rows, columns)};
}

KernelCase LayerNorm(int rows, int columns) {
  return {fmt::format("layernorm_{}_{}", rows, columns),
          fmt::format("workload 1\n"
                      "x0: f32[{0},{1}] input range(-1,1)\n"
                      "x1: f32[{1}] constant\n"
                      "x2: f32[{1}] constant\n"
                      "s0: f32[{0}] = sum[r0:{1}] (x0[i0, r0])\n"
                      "s1: f32[{0}] = sum[r0:{1}] ((x0[i0, r0] - s0[i0] / {1}.0) * (x0[i0, r0] - "
                      "s0[i0] / {1}.0))\n"
                      "s2: f32[{0},{1}] output = (x0[i0, i1] - s0[i0] / {1}.0) * rsqrt(s1[i0] / "
                      "{1}.0 + 1e-05) * x1[i1] + x2[i1]\n",
                      rows, columns)};
}

KernelCase Gelu(int rows, int columns) {
  return {fmt::format("gelu_{}_{}", rows, columns),
          fmt::format("workload 1\n"
                      "x0: f32[{0},{1}] input range(-1,1)\n"
                      "s0: f32[{0},{1}] = x0[i0, i1] * 0.70710677\n"
                      "s1: f32[{0},{1}] = erf(s0[i0, i1])\n"
                      "s2: f32[{0},{1}] = s1[i0, i1] + 1.0\n"
                      "s3: f32[{0},{1}] = x0[i0, i1] * s2[i0, i1]\n"
                      "s4: f32[{0},{1}] output = s3[i0, i1] * 0.5\n",
                      rows, columns)};
}

}  // namespace

std::vector<KernelCase> KernelCases() {
  return {Gemm(512, 512, 512), Gemm(1024, 1024, 1024), Gemm(128, 768, 768), Gemm(128, 3072, 768),
          Convolution3(64, 56), Convolution3(128, 28), Convolution3(256, 14), Convolution3(512, 7),
          // Batches, a large image, and the products of a long sequence.
          Convolution3(128, 28, 2), Convolution3(256, 14, 3), Convolution3(512, 7, 8),
          Convolution3(32, 224), Gemm(1500, 1536, 384), Convolution1(64, 256, 56),
          Convolution1(256, 64, 56), Convolution1(512, 2048, 7), Convolution1(1024, 256, 14),
          Depthwise(32, 112), Depthwise(144, 56), Depthwise(384, 14), Softmax(1536, 128),
          Softmax(1024, 1024), LayerNorm(128, 768), Gelu(128, 3072)};
}

}  // namespace hone::bench
