#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/npz.h"
#include "tests/graph/onnx_model.h"

// The network that the tests of quantize and prune change.
namespace hone::client::testing {

/// Numbers between -size and size.
std::vector<double> Drawn(size_t count, uint64_t seed, double size);

/// An initialiser of numbers between -0.5 and 0.5.
void AddWeights(graph::OnnxModel& model, const std::string& name, const std::vector<int64_t>& shape,
                uint64_t seed);

/// x[2,8,6,6] → Conv 3×3 with bias ("first", to 16 channels) → Relu → GlobalAveragePool → Flatten →
/// MatMul ("second", to 32) → Add → Gemm ("third", to y[2,10]).
void WriteSmallNetwork(const std::string& path);

/// Fails the test where it cannot.
void SaveTensors(const std::string& path, const NamedTensors& tensors);

}  // namespace hone::client::testing
