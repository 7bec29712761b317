#include "proto/quiet_grpc.h"

#include "base/log.h"
#include "proto/farm_service.h"

namespace hone::proto {

void KeepGrpcQuiet() {
  gpr_set_log_function([](gpr_log_func_args* said) { LogDebug("gRPC: {}", said->message); });
}

}  // namespace hone::proto
