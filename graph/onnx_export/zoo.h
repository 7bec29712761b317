#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::graph {

/// What WriteZooModel wrote.
struct ZooModel {
  int64_t parameters = 0;  ///< float32 values in weights
};

struct ZooNetwork {
  std::string_view name;
  std::string_view summary;  ///< what it does on what input; lives as long as the program
};

/// The networks it knows, in a fixed order.
std::vector<ZooNetwork> ZooNetworks();

/// Writes a published topology with weights drawn from `seed` as ONNX. The same bytes for the same
/// name and seed everywhere. NotFound for another name; errors of the file system.
absl::StatusOr<ZooModel> WriteZooModel(std::string_view name, uint64_t seed,
                                       const std::string& path);

}  // namespace hone::graph
