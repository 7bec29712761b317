#pragma once

#include <string>
#include <vector>

namespace hone::bench {

/// One kernel of `bench-kernels`: a Workload as the compiler makes it inside a model (NHWC where it
/// convolves), and what is asked of it.
struct KernelCase {
  std::string name;        ///< as bench/peers/operators.py names the operator
  std::string workload;    ///< text
  double flop = 0;         ///< 2 × multiply-adds, without taps in the padding; 0: none to count
  double least_share = 0;  ///< of the FMA peak, for direct schedules; 0: compared with a peer
};

/// GEMM, ResNet's layers, depthwise convolutions, softmax, layer norm and GELU.
std::vector<KernelCase> KernelCases();

}  // namespace hone::bench
