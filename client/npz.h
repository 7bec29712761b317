#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/npy.h"
#include "graph/graph.h"

namespace hone::client {

/// Tensors by name, in file order; names are unique.
using NamedTensors = std::vector<std::pair<std::string, graph::TensorData>>;

/// The tensor of that name, or null.
const graph::TensorData* FindTensor(const NamedTensors& tensors, std::string_view name);

/// Reads a zip archive of .npy files, stored or deflated; the ".npy" of a name is dropped. Errors
/// name file and entry: NotFound, PermissionDenied, InvalidArgument (not an archive, damaged, two
/// entries of one name, an entry that is not an array).
absl::StatusOr<NamedTensors> ReadNpz(const std::string& path);

/// Writes stored entries without times: the same tensors give the same bytes. The file appears
/// whole or not at all.
absl::Status WriteNpz(const std::string& path, const NamedTensors& tensors);

}  // namespace hone::client
