#include "server/device_match.h"

#include "ir/target.h"

namespace hone::server {

bool CanRun(const proto::DeviceFacts& device, const std::string& text) {
  ir::Target target, best;
  std::string why;
  if (!ir::ParseTarget(text, &target, &why) || !ir::ParseTarget(device.target, &best, &why)) {
    return false;
  }
  if (target.isa > best.isa || target.threads > device.cores) return false;
  return (best.vnni || !target.vnni) && (best.bf16 || !target.bf16);
}

}  // namespace hone::server
