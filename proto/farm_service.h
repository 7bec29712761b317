#pragma once

#include "absl/status/status.h"

#include "hone/v1/farm.grpc.pb.h"
#include "proto/convert.h"

// The generated services for the few files that serve or call them, and the one crossing between
// gRPC's status and ours.
namespace hone::proto {

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hone::proto
