#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "graph/graph.h"

namespace hone::client {

/// Tensors by name, in file order; names are unique.
using NamedTensors = std::vector<std::pair<std::string, graph::TensorData>>;

/// The tensor of that name, or null.
const graph::TensorData* FindTensor(const NamedTensors& tensors, std::string_view name);

/// Reads NumPy's .npy format, versions 1 to 3 (numpy/lib/format.py; numpy.org/neps/nep-0001): any
/// byte order and Fortran order are converted to little-endian row-major, bool bytes to 0 or 1.
/// bf16 is what ml_dtypes writes: two-byte void. InvalidArgument: damaged, of a dtype that no
/// tensor has (objects, strings, records, complex), of rank above 6, or of more than
/// kMaxArrayBytes.
absl::StatusOr<graph::TensorData> ParseNpy(std::string_view file);

/// The same tensor as .npy version 1.0, data aligned to 64 bytes.
std::string FormatNpy(const graph::TensorData& tensor);

absl::StatusOr<graph::TensorData> ReadNpy(const std::string& path);
absl::Status WriteNpy(const std::string& path, const graph::TensorData& tensor);

/// Reads a zip archive of .npy files, stored or deflated; the ".npy" of a name is dropped. Errors
/// name file and entry: NotFound, PermissionDenied, InvalidArgument (not an archive, damaged, two
/// entries of one name, an entry that is not an array).
absl::StatusOr<NamedTensors> ReadNpz(const std::string& path);

/// Writes stored entries without times: the same tensors give the same bytes. The file appears
/// whole or not at all.
absl::Status WriteNpz(const std::string& path, const NamedTensors& tensors);

/// A bound on what a header may make us allocate.
inline constexpr int64_t kMaxArrayBytes = int64_t{1} << 34;

}  // namespace hone::client
