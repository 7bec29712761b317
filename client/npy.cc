#include "client/npy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"
#include "client/npy_header.h"

namespace hone::client {
namespace {

using Bytes = std::vector<std::byte>;

/// The elements in the order and byte order of a TensorData.
Bytes Normalise(const NpyHeader& header, std::string_view data) {
  Bytes bytes(data.size());
  if (!data.empty()) std::memcpy(bytes.data(), data.data(), data.size());
  const size_t size = static_cast<size_t>(ir::SizeOf(header.type.dtype));
  if (header.big_endian && size > 1) {
    for (size_t at = 0; at < bytes.size(); at += size) {
      std::reverse(bytes.data() + at, bytes.data() + at + size);
    }
  }
  if (ir::IsBool(header.type.dtype)) {
    for (std::byte& b : bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  const std::vector<int64_t>& shape = header.type.shape;
  if (!header.fortran_order || shape.size() < 2 || bytes.empty()) return bytes;
  Bytes rows(bytes.size());
  std::vector<int64_t> index(shape.size(), 0);
  for (size_t from = 0; from < bytes.size(); from += size) {
    int64_t to = 0;
    for (size_t d = 0; d < shape.size(); ++d) to = to * shape[d] + index[d];
    std::memcpy(rows.data() + static_cast<size_t>(to) * size, bytes.data() + from, size);
    for (size_t d = 0; d < shape.size() && ++index[d] == shape[d]; ++d) index[d] = 0;
  }
  return rows;
}

graph::TensorData MakeTensor(graph::TensorType type, Bytes bytes) {
  return *graph::MakeConstant(std::move(type), std::move(bytes));
}

}  // namespace

absl::StatusOr<graph::TensorData> ParseNpy(std::string_view file) {
  HONE_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(file));
  const auto have = static_cast<int64_t>(file.size() - header.data_offset);
  if (have != header.type.Bytes()) {
    return absl::InvalidArgumentError(fmt::format(
        "the header promises {} bytes of data, the file has {}: it is cut off or damaged",
        header.type.Bytes(), have));
  }
  return MakeTensor(header.type, Normalise(header, file.substr(header.data_offset)));
}

std::string FormatNpy(const graph::TensorData& tensor) {
  std::string file = FormatNpyHeader(tensor.type);
  file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return file;
}

absl::StatusOr<graph::TensorData> ReadNpy(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  auto tensor = ParseNpy(file);
  if (!tensor.ok()) return Annotate(tensor.status(), fmt::format("cannot read '{}'", path));
  return tensor;
}

absl::Status WriteNpy(const std::string& path, const graph::TensorData& tensor) {
  return WriteFileAtomically(path, FormatNpy(tensor));
}

}  // namespace hone::client
