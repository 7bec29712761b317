#include "server/device_match.h"

#include "ir/target.h"

namespace hone::server {

bool CanRun(const proto::DeviceFacts& device, const std::string& text) {
  const std::optional<ir::Target> target = TargetOf(text), best = TargetOf(device.target);
  return target && best && CanRun(*best, device.cores, *target);
}

bool CanRun(const ir::Target& best, int cores, const ir::Target& target) {
  if (target.isa > best.isa || target.threads > cores) return false;
  return (best.vnni || !target.vnni) && (best.bf16 || !target.bf16);
}

std::optional<ir::Target> TargetOf(const std::string& text) {
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(text, &target, &why)) return std::nullopt;
  return target;
}

}  // namespace hone::server
