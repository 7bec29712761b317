#include "server/device_match.h"

#include "ir/target.h"

namespace hone::server {

bool CanRun(const proto::DeviceFacts& device, const std::string& text) {
  const std::optional<ir::Target> target = TargetOf(text), best = TargetOf(device.target);
  return target && best && CanRun(*best, device.cores, *target);
}

bool CanRun(const ir::Target& best, int cores, const ir::Target& target) {
  return target.threads <= cores && ir::Covers(best, target);
}

std::optional<ir::Target> TargetOf(const std::string& text) {
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(text, &target, &why)) return std::nullopt;
  return target;
}

}  // namespace hone::server
