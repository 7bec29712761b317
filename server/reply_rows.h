#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "proto/convert.h"
#include "proto/limits.h"

namespace hone::server {

/// Whether a reply's last row still fits into a message; `used` counts those before it, bytes.
/// Nobody can receive a larger one.
inline bool Fits(size_t row_bytes, int64_t* used) {
  constexpr int64_t kHeaderBytes = 8;
  *used += static_cast<int64_t>(row_bytes) + kHeaderBytes;
  return *used <= proto::kMaxRowsBytes;
}

/// Adds values to a reply's rows (google::protobuf::RepeatedPtrField<Row>), as many as fit.
template <typename Value, template <typename> typename Rows, typename Row>
void AddRows(const std::vector<Value>& values, Rows<Row>* rows, int64_t* used) {
  for (const Value& value : values) {
    Row row;
    proto::ToWire(value, &row);
    if (!Fits(row.ByteSizeLong(), used)) break;
    *rows->Add() = std::move(row);
  }
}

/// The row of a ListSessionsRequest behind which the list goes on; none: it begins.
template <typename Request>
absl::StatusOr<std::optional<Hash128>> AfterOf(const Request& request) {
  if (request.after_session().empty()) return std::nullopt;
  return proto::IdFromBytes(request.after_session(), "after_session");
}

}  // namespace hone::server
