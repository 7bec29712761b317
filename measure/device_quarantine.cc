#include "measure/device_quarantine.h"

#include <unistd.h>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"

namespace hone::measure {

std::string QuarantinePath(const std::string& folder, const std::string& device) {
  std::string name = device;
  for (char& c : name) c = c == '/' || c == ':' ? '-' : c;
  return fmt::format("{}/hone-{}.quarantine", folder, name);
}

absl::Status CheckQuarantine(const std::string& folder, const std::string& device) {
  const std::string path = QuarantinePath(folder, device);
  if (::access(path.c_str(), F_OK) != 0) return absl::OkStatus();
  const absl::StatusOr<std::string> why = ReadFile(path);
  return absl::FailedPreconditionError(
      fmt::format("the device {} is in quarantine: {}; look at it (nvidia-smi -q, dmesg), and when "
                  "it works again remove '{}'",
                  device, why.ok() ? *why : StatusMessage(why.status()), path));
}

absl::Status PutInQuarantine(const std::string& folder, const std::string& device,
                             const std::string& why) {
  const std::string path = QuarantinePath(folder, device);
  if (::access(path.c_str(), F_OK) == 0) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(MakeDirectories(folder));
  return WriteFileAtomically(path, why);
}

}  // namespace hone::measure
