#include "ir/target.h"

#include "ir/cpu/cpu_target.h"
#include "ir/cuda/cuda_target.h"

// std only: the runtime links this file.
namespace hone::ir {
namespace {

std::vector<const TargetKind*>& Registry() {
  static std::vector<const TargetKind*> kinds = {&CpuKind(), &CudaKind()};
  return kinds;
}

/// The kind whose name stands before the text's first colon, or null.
const TargetKind* KindOf(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return nullptr;
  for (const TargetKind* kind : Registry()) {
    if (text.substr(0, colon) == kind->name()) return kind;
  }
  return nullptr;
}

const TargetKind& KindOf(const Target& target) {
  const TargetKind* const kind = KindOf(target.text);
  HONE_CHECK(kind != nullptr) << "target '" << target.text << "' was not parsed";
  return *kind;
}

}  // namespace

const std::vector<const TargetKind*>& TargetKinds() { return Registry(); }

void RegisterTargetKind(const TargetKind* kind) { Registry().push_back(kind); }

bool ParseTarget(std::string_view text, Target* target, std::string* error) {
  *target = Target();
  const TargetKind* const kind = KindOf(text);
  std::string why, accepted;
  if (kind != nullptr) {
    if (kind->Parse(text, target, &why)) return true;
    accepted = kind->accepted();
  } else {
    why = "it does not begin with a kind of device";
    for (const TargetKind* known : Registry()) {
      accepted += (accepted.empty() ? "" : "; ") + std::string(known->accepted());
    }
  }
  *error = "target '" + std::string(text) + "': " + why + "; accepted: " + accepted;
  return false;
}

std::string ResolveNative(std::string_view text, int threads) {
  const TargetKind* const kind = KindOf(text);
  return kind == nullptr ? std::string(text) : kind->ResolveNative(text, threads);
}

bool HostCanRun(const Target& target, std::string* why) {
  return KindOf(target).HostCanRun(target, why);
}

bool Covers(const Target& device, const Target& code) {
  return device.kind == code.kind && KindOf(device).Covers(device, code);
}

double MostFlopPerNs(const Target& target) { return KindOf(target).MostFlopPerNs(target); }
double MostBytesPerNs(const Target& target) { return KindOf(target).MostBytesPerNs(target); }

uint64_t PackageBits(const Target& target) { return KindOf(target).PackageBits(target); }

}  // namespace hone::ir
