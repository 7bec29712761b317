#include "measure/device.h"

#include <algorithm>
#include <charconv>

#include "fmt/format.h"

#include "ir/kind_name.h"
#include "measure/cpu/cpu_device.h"
#include "measure/cuda/cuda_device.h"

namespace hone::measure {
namespace {

constexpr size_t kMaxDigits = 4;

/// The number of KIND:NUMBER; -1 where it is written otherwise.
int NumberOf(std::string_view name) {
  const std::string_view digits = name.substr(std::min(name.find(':') + 1, name.size()));
  if (digits.empty() || digits.size() > kMaxDigits || (digits != "0" && digits[0] == '0')) {
    return -1;
  }
  int number = 0;
  const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = code == std::errc() && stop == digits.data() + digits.size();
  return whole ? number : -1;
}

}  // namespace

ir::PerKind<KindDevices>& DevicesOfHost() {
  static ir::PerKind<KindDevices> kinds = {{"cpu", &CpuDevices()}, {"cuda", &CudaDevices()}};
  return kinds;
}

absl::StatusOr<HostDevice> DescribeDevice(std::string_view name) {
  const KindDevices* const kind = DevicesOfHost().Find(ir::KindNameOf(name));
  const int number = NumberOf(name);
  if (kind != nullptr && number >= 0) return kind->Describe(number);
  std::string known;
  for (const ir::TargetKind* other : ir::TargetKinds()) {
    if (DevicesOfHost().Find(other->name()) == nullptr) continue;
    known += fmt::format("{}{}:N", known.empty() ? "" : " or ", other->name());
  }
  return absl::InvalidArgumentError(fmt::format(
      "there is no such device; devices are called {}, where N has at most four digits", known));
}

std::unique_ptr<OthersWatch> WatchOthersOf(std::string_view name, const MonotonicClock& clock) {
  const KindDevices* const kind = DevicesOfHost().Find(ir::KindNameOf(name));
  const int number = NumberOf(name);
  return kind == nullptr || number < 0 ? nullptr : kind->WatchOthers(number, clock);
}

int HostCoresOf(const ir::Target& target) {
  const KindDevices* const kind = DevicesOfHost().Find(target.kind);
  return kind == nullptr ? 0 : kind->HostCores(target);
}

std::string DeviceClassFor(const ir::Target& target) {
  const KindDevices* const devices = DevicesOfHost().Find(target.kind);
  if (devices != nullptr) {
    const absl::StatusOr<HostDevice> first = devices->Describe(0);
    if (first.ok()) return first->device_class;
  }
  return target.kind + ":none";
}

}  // namespace hone::measure
