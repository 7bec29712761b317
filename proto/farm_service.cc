#include "proto/farm_service.h"

#include <string>

#include "base/status.h"
#include "proto/field_check.h"

namespace hone::proto {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // The codes are gRPC's by definition.
  return {static_cast<grpc::StatusCode>(status.code()), Cut(StatusMessage(status), kMaxTextBytes)};
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace hone::proto
