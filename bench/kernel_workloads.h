#pragma once

#include <string>

/// Texts of Workloads as the compiler makes them inside a model. Thread-safe.
namespace hone::bench {

/// An m×k by k×n product; the second operand is constant.
std::string ProductText(int m, int n, int k);
/// 3×3 over size×size in NHWC, stride 1, padding 1, with bias and relu.
std::string Convolution3Text(int channels, int size, int images = 1);
/// 1×1 over size×size in NHWC with bias and relu.
std::string Convolution1Text(int from, int to, int size);

}  // namespace hone::bench
