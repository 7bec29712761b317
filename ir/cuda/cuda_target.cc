#include "ir/cuda/cuda_target.h"

#include <array>
#include <memory>

#include "ir/cuda/cuda_driver.h"

// std only: the runtime links this file.
namespace hone::ir {
namespace {

constexpr std::string_view kPrefix = "cuda:";
constexpr char kAccepted[] = "cuda:sm_80|sm_86|sm_89|sm_90a|sm_100a";
constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;

/// A chip with the numbers of a card that has it, nominal: NVIDIA's architecture whitepapers and
/// data sheets, limits by the CUDA C++ Programming Guide, "Compute Capabilities".
struct Chip {
  const char* name;
  int capability;
  bool exact;
  int multiprocessors, most_threads;
  int64_t shared_kib, block_shared_kib, l2_mib;
  double gigabytes_per_second, teraflop_per_second, tensor_teraflop_per_second,
      byte_teraop_per_second;
};
constexpr std::array kChips = {
    Chip{"sm_80", 80, false, 108, 2048, 164, 163, 40, 1555, 19.5, 312, 624},     // A100 SXM, 40 GB
    Chip{"sm_86", 86, false, 84, 1536, 100, 99, 6, 696, 37.4, 149.7, 299.3},     // A40
    Chip{"sm_89", 89, false, 142, 1536, 100, 99, 96, 864, 91.6, 362, 733},       // L40S
    Chip{"sm_90a", 90, true, 132, 2048, 228, 227, 50, 3350, 66.9, 989.4, 1979},  // H100 SXM
    Chip{"sm_100a", 100, true, 148, 2048, 228, 227, 126, 8000, 80, 2250, 4500},  // B200
};

const Chip* ChipNamed(std::string_view name) {
  for (const Chip& chip : kChips) {
    if (name == chip.name) return &chip;
  }
  return nullptr;
}

/// Whether a device of this capability runs code for the chip.
bool Runs(int capability, const CudaTarget& chip) {
  return chip.exact ? capability == chip.capability : capability >= chip.capability;
}

std::string CapabilityText(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

/// Why `native` stands in a text that should be resolved.
std::string WhyNotNative() {
  std::string missing;
  if (CudaCapability(&missing) == 0) return "'native' means this machine's GPU, and " + missing;
  return "'native' must be resolved on the machine it means before it is stored";
}

std::shared_ptr<CudaTarget> DetailsOf(const Chip& chip) {
  const auto details = std::make_shared<CudaTarget>();
  details->chip = chip.name;
  details->capability = chip.capability;
  details->exact = chip.exact;
  details->multiprocessors = chip.multiprocessors;
  details->most_threads = chip.most_threads;
  details->shared_bytes = chip.shared_kib * kKiB;
  details->block_shared_bytes = chip.block_shared_kib * kKiB;
  details->l2_bytes = chip.l2_mib * kMiB;
  details->memory_bytes_per_second = chip.gigabytes_per_second * 1e9;
  details->flop_per_second = chip.teraflop_per_second * 1e12;
  details->tensor_flop_per_second = chip.tensor_teraflop_per_second * 1e12;
  details->byte_op_per_second = chip.byte_teraop_per_second * 1e12;
  return details;
}

class Cuda final : public TargetKind {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string_view accepted() const override { return kAccepted; }

  bool Parse(std::string_view text, Target* target, std::string* why) const override {
    const std::string_view name = text.substr(kPrefix.size());
    const Chip* const chip = ChipNamed(name);
    if (chip == nullptr) {
      *why = name == "native" ? WhyNotNative()
             : name.find(',') != std::string_view::npos
                 ? "a GPU has no options"
                 : "unknown chip '" + std::string(name) + "'";
      return false;
    }
    target->kind = this->name();
    target->text = target->family = text;
    target->details = DetailsOf(*chip);
    return true;
  }

  /// The best chip of the table that this machine's GPU runs; without one the text stays.
  std::string ResolveNative(std::string_view text, int) const override {
    std::string why;
    const std::string best =
        text == "cuda:native" ? CudaTargetFor(CudaCapability(&why)) : std::string();
    return best.empty() ? std::string(text) : best;
  }

  bool HostCanRun(const Target& target, std::string* why) const override {
    const auto& chip = target.As<CudaTarget>();
    std::string missing;
    const int capability = CudaCapability(&missing);
    if (capability != 0 && Runs(capability, chip)) return true;
    *why =
        "code for " + target.text + " needs a GPU of compute capability " +
        CapabilityText(chip.capability) + (chip.exact ? "" : " or above") + ", " +
        (capability == 0 ? "and " + missing : "this machine's has " + CapabilityText(capability));
    return false;
  }

  bool Covers(const Target& device, const Target& code) const override {
    return Runs(device.As<CudaTarget>().capability, code.As<CudaTarget>());
  }

  double MostFlopPerNs(const Target& target) const override {
    return target.As<CudaTarget>().tensor_flop_per_second * 1e-9;
  }

  /// A second level gives a few times what memory does.
  double MostBytesPerNs(const Target& target) const override {
    return 4 * target.As<CudaTarget>().memory_bytes_per_second * 1e-9;
  }

  uint64_t PackageBits(const Target&) const override { return kIsaCuda; }
};

}  // namespace

std::string CudaTargetFor(int capability) {
  std::string best;
  for (const Chip& chip : kChips) {
    if (Runs(capability, *DetailsOf(chip))) best = std::string(kPrefix) + chip.name;
  }
  return best;
}

const TargetKind& CudaKind() {
  static const Cuda kind;
  return kind;
}

}  // namespace hone::ir
