#include "ir/cpu/cpu_target.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>

// std only: the runtime links this file.
namespace hone::ir {
namespace {

constexpr int kMaxThreads = 1024;
constexpr char kAccepted[] = "cpu:avx2|avx512[+vnni+bf16+amx],threads=1..1024";
constexpr std::string_view kPrefix = "cpu:";

/// What an instruction set stands for; the only place that says so. Cache sizes are nominal.
void SetIsa(Isa isa, CpuTarget* target) {
  const bool wide = isa == Isa::kAvx512;
  target->isa = isa;
  target->lanes = wide ? 16 : 8;
  target->registers = wide ? 32 : 16;
  target->l1_bytes = 32 << 10;
  target->l2_bytes = wide ? 1 << 20 : 512 << 10;
  target->l3_bytes = 16 << 20;
  target->llvm_cpu = wide ? "x86-64-v4" : "x86-64-v3";
  // x86-64-v4 is tuned for 256-bit vectors. Functions also carry "prefer-vector-width"="512".
  target->llvm_features = wide ? "-prefer-256-bit" : "";
}

void AddFeature(std::string_view feature, CpuTarget* target) {
  if (!target->llvm_features.empty()) target->llvm_features += ',';
  target->llvm_features += feature;
}

/// Sets the flag named by one +extension.
bool AddExtension(std::string_view name, CpuTarget* target, std::string* why) {
  bool* const wide = name == "bf16" ? &target->bf16 : name == "amx" ? &target->amx : nullptr;
  if (name == "vnni" && !target->vnni) {
    target->vnni = true;
  } else if (wide != nullptr && !*wide) {
    if (target->isa != Isa::kAvx512) {
      *why = "+" + std::string(name) + " needs avx512";
      return false;
    }
    *wide = true;
  } else {
    *why = "unknown or repeated extension '+" + std::string(name) + "'";
    return false;
  }
  return true;
}

bool ParseIsa(std::string_view isa, CpuTarget* target, std::string* why) {
  size_t end = isa.find('+');
  const std::string_view name = isa.substr(0, end);
  if (name == "avx2") {
    SetIsa(Isa::kAvx2, target);
  } else if (name == "avx512") {
    SetIsa(Isa::kAvx512, target);
  } else if (name == "native") {
    *why = "'native' must be resolved on the machine it means before it is stored";
    return false;
  } else {
    *why = "unknown instruction set '" + std::string(name) + "'";
    return false;
  }
  while (end != std::string_view::npos) {
    const size_t start = end + 1;
    end = isa.find('+', start);
    const size_t length = end == std::string_view::npos ? end : end - start;
    if (!AddExtension(isa.substr(start, length), target, why)) return false;
  }
  return true;
}

bool HasAvxVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1U << 4)) != 0;
}

bool HasVnni(bool wide) { return wide ? __builtin_cpu_supports("avx512vnni") != 0 : HasAvxVnni(); }

bool HasBf16(bool wide) { return wide && __builtin_cpu_supports("avx512bf16") != 0; }

bool HasAvx2Level() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
}

bool HasAvx512Level() {
  return HasAvx2Level() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512cd") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

/// Reads `threads=N`.
bool ParseOption(std::string_view option, int* threads, std::string* why) {
  constexpr std::string_view kThreads = "threads=";
  if (option.substr(0, kThreads.size()) != kThreads) {
    *why = "unknown option '" + std::string(option) + "'";
    return false;
  }
  const char* const begin = option.data() + kThreads.size();
  const char* const end = option.data() + option.size();
  const auto [stop, code] = std::from_chars(begin, end, *threads);
  if (code == std::errc() && stop == end && *threads >= 1 && *threads <= kMaxThreads) return true;
  *why = "threads must be a number from 1 to 1024";
  return false;
}

class Cpu final : public TargetKind {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view accepted() const override { return kAccepted; }

  bool Parse(std::string_view text, Target* target, std::string* why) const override {
    const std::string_view rest = text.substr(kPrefix.size());
    const size_t comma = rest.find(',');
    const auto cpu = std::make_shared<CpuTarget>();
    if (!ParseIsa(rest.substr(0, comma), cpu.get(), why)) return false;
    if (comma != std::string_view::npos &&
        !ParseOption(rest.substr(comma + 1), &target->threads, why)) {
      return false;
    }
    const bool wide = cpu->isa == Isa::kAvx512;
    target->kind = name();
    target->family = wide ? "cpu:avx512" : "cpu:avx2";
    if (cpu->vnni) {
      target->family += "+vnni";
      AddFeature(wide ? "+avx512vnni" : "+avxvnni", cpu.get());
    }
    if (cpu->bf16) {
      target->family += "+bf16";
      AddFeature("+avx512bf16", cpu.get());
    }
    if (cpu->amx) {
      target->family += "+amx";
      AddFeature("+amx-tile,+amx-int8,+amx-bf16", cpu.get());
    }
    target->text = target->family + ",threads=" + std::to_string(target->threads);
    target->details = cpu;
    return true;
  }

  std::string ResolveNative(std::string_view text, int threads) const override {
    std::string resolved(text);
    constexpr std::string_view kNative = "cpu:native";
    if (text.substr(0, kNative.size()) == kNative) {
      const bool wide = HasAvx512Level();
      const std::string rest = resolved.substr(kNative.size());
      resolved = wide ? "cpu:avx512" : "cpu:avx2";
      if (HasVnni(wide) && rest.find("+vnni") == std::string::npos) resolved += "+vnni";
      if (HasBf16(wide) && rest.find("+bf16") == std::string::npos) resolved += "+bf16";
      if (wide && HasAmx() && rest.find("+amx") == std::string::npos) resolved += "+amx";
      resolved += rest;
    }
    if (resolved.find(",threads=") == std::string::npos) {
      resolved += ",threads=" + std::to_string(threads);
    }
    return resolved;
  }

  bool HostCanRun(const Target& target, std::string* why) const override {
    *why = WhyNotOn({.avx2 = HasAvx2Level(),
                     .avx512 = HasAvx512Level(),
                     .avx_vnni = HasVnni(false),
                     .avx512_vnni = HasVnni(true),
                     .avx512_bf16 = HasBf16(true),
                     .amx = target.As<CpuTarget>().amx && HasAmx()},
                    target);
    return why->empty();
  }

  bool Covers(const Target& device, const Target& code) const override {
    const auto &best = device.As<CpuTarget>(), &cpu = code.As<CpuTarget>();
    // AVX-VNNI and AVX512-VNNI are two extensions: chips have either without the other.
    const bool vnni = best.vnni && best.isa == cpu.isa;
    return cpu.isa <= best.isa && (vnni || !cpu.vnni) && (best.bf16 || !cpu.bf16) &&
           (best.amx || !cpu.amx);
  }

  /// Multiply-adds at two per lane and nominal cycle.
  double MostFlopPerNs(const Target& target) const override {
    constexpr double kGigahertz = 4.5;
    return 2.0 * target.As<CpuTarget>().lanes * 2 * target.threads * kGigahertz;
  }

  /// Each thread from the last level.
  double MostBytesPerNs(const Target& target) const override { return 200.0 * target.threads; }

  uint64_t PackageBits(const Target& target) const override {
    const auto& cpu = target.As<CpuTarget>();
    return kIsaAvx2 | (cpu.isa == Isa::kAvx512 ? kIsaAvx512 : 0) | (cpu.vnni ? kIsaVnni : 0) |
           (cpu.bf16 ? kIsaBf16 : 0) | (cpu.amx ? kIsaAmx : 0);
  }
};

}  // namespace

bool HasAmx() {
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24, kBytes = 1U << 25;
  constexpr unsigned kAll = kBf16 | kTile | kBytes;
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAll) != kAll) return false;
  static const bool granted = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return granted;
}

std::string WhyNotOn(const CpuFeatures& cpu, const Target& target) {
  const auto& code = target.As<CpuTarget>();
  const bool wide = code.isa == Isa::kAvx512;
  std::string missing, remedy;
  if (wide ? !cpu.avx512 : !cpu.avx2) {
    missing = wide ? "AVX-512 (F, BW, CD, DQ, VL)" : "AVX2 with FMA and BMI2";
    remedy = cpu.avx2 ? "; compile the model for --target cpu:avx2"
                      : "; use a CPU of 2013 or later, or let the virtual machine pass its CPU's "
                        "features through";
  } else if (code.vnni && !(wide ? cpu.avx512_vnni : cpu.avx_vnni)) {
    missing = wide ? "AVX512-VNNI" : "AVX-VNNI";
  } else if (code.bf16 && !cpu.avx512_bf16) {
    missing = "AVX512-BF16";
    remedy = "; code for a target without +bf16 multiplies in f32";
  } else if (code.amx && !cpu.amx) {
    missing = "AMX (tiles, int8, bf16), with the kernel's leave to use it";
    remedy = "; code for a target without +amx multiplies in vectors";
  }
  if (missing.empty()) return "";
  const char* host = cpu.avx512 ? "avx512" : cpu.avx2 ? "avx2" : "older than avx2";
  return "code for " + target.text + " needs " + missing + ", which this host (" + host +
         ") does not have" + remedy;
}

const TargetKind& CpuKind() {
  static const Cpu kind;
  return kind;
}

}  // namespace hone::ir
