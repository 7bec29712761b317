#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "graph/graph.h"

namespace hone::client {

/// What stands before the data of a .npy file.
struct NpyHeader {
  graph::TensorType type;
  bool fortran_order = false;  ///< first index fastest
  bool big_endian = false;
  size_t data_offset = 0;  ///< bytes from the start of the file
};

/// Parses magic, version 1.0, 2.0 or 3.0, and the dictionary with exactly the keys descr,
/// fortran_order and shape. The bytes may be anything. InvalidArgument says what is wrong; shapes
/// are bounded by kMaxArrayBytes (client/npz.h) and rank 6.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view file);

/// Magic, version 1.0 and the dictionary, padded so that the data starts at a multiple of 64 bytes.
std::string FormatNpyHeader(const graph::TensorType& type);

}  // namespace hone::client
