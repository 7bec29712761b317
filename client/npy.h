#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "graph/graph.h"

namespace hone::client {

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

/// A bound on what a header may make us allocate.
inline constexpr int64_t kMaxArrayBytes = int64_t{1} << 34;

}  // namespace hone::client
