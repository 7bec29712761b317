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

/// The names it knows, in a fixed order.
std::vector<std::string> ZooNames();

/// Writes a published topology with weights drawn from `seed` as ONNX. The same bytes for the same
/// name and seed everywhere. NotFound for another name; errors of the file system.
absl::StatusOr<ZooModel> WriteZooModel(std::string_view name, uint64_t seed,
                                       const std::string& path);

}  // namespace hone::graph
