#include "ir/target.h"

#include <cpuid.h>

#include <charconv>

// std only: the runtime links this file.
namespace hone::ir {
namespace {

constexpr int kMaxThreads = 1024;
constexpr char kAccepted[] = "accepted: cpu:avx2|avx512[+vnni+bf16],threads=1..1024";

/// What an instruction set stands for; the only place that says so. Cache sizes are nominal.
void SetIsa(Isa isa, Target* target) {
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

void AddFeature(std::string_view feature, Target* target) {
  if (!target->llvm_features.empty()) target->llvm_features += ',';
  target->llvm_features += feature;
}

bool Fail(std::string_view text, const std::string& why, std::string* error) {
  *error = "target '" + std::string(text) + "': " + why + "; " + kAccepted;
  return false;
}

/// Sets the flag named by one +extension.
bool AddExtension(std::string_view name, Target* target, std::string* why) {
  if (name == "vnni" && !target->vnni) {
    target->vnni = true;
  } else if (name == "bf16" && !target->bf16) {
    if (target->isa != Isa::kAvx512) {
      *why = "+bf16 needs avx512";
      return false;
    }
    target->bf16 = true;
  } else {
    *why = "unknown or repeated extension '+" + std::string(name) + "'";
    return false;
  }
  return true;
}

bool ParseIsa(std::string_view isa, Target* target, std::string* why) {
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

bool HasAvx2Level() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
}

bool HasAvx512Level() {
  return HasAvx2Level() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512cd") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

}  // namespace

bool ParseTarget(std::string_view text, Target* target, std::string* error) {
  *target = Target();
  constexpr std::string_view kPrefix = "cpu:";
  if (text.substr(0, kPrefix.size()) != kPrefix) {
    return Fail(text, "it does not begin with 'cpu:'", error);
  }
  const std::string_view rest = text.substr(kPrefix.size());
  const size_t comma = rest.find(',');
  std::string why;
  if (!ParseIsa(rest.substr(0, comma), target, &why)) return Fail(text, why, error);
  if (comma != std::string_view::npos) {
    const std::string_view option = rest.substr(comma + 1);
    constexpr std::string_view kThreads = "threads=";
    if (option.substr(0, kThreads.size()) != kThreads) {
      return Fail(text, "unknown option '" + std::string(option) + "'", error);
    }
    const char* const begin = option.data() + kThreads.size();
    const char* const end = option.data() + option.size();
    const auto [stop, code] = std::from_chars(begin, end, target->threads);
    if (code != std::errc() || stop != end || target->threads < 1 ||
        target->threads > kMaxThreads) {
      return Fail(text, "threads must be a number from 1 to 1024", error);
    }
  }
  target->text = target->isa == Isa::kAvx512 ? "cpu:avx512" : "cpu:avx2";
  if (target->vnni) {
    target->text += "+vnni";
    AddFeature(target->isa == Isa::kAvx512 ? "+avx512vnni" : "+avxvnni", target);
  }
  if (target->bf16) {
    target->text += "+bf16";
    AddFeature("+avx512bf16", target);
  }
  target->text += ",threads=" + std::to_string(target->threads);
  return true;
}

std::string ResolveNative(std::string_view text, int threads) {
  std::string resolved(text);
  constexpr std::string_view kNative = "cpu:native";
  if (text.substr(0, kNative.size()) == kNative) {
    resolved = (HasAvx512Level() ? "cpu:avx512" : "cpu:avx2") + resolved.substr(kNative.size());
  }
  if (resolved.find(",threads=") == std::string::npos) {
    resolved += ",threads=" + std::to_string(threads);
  }
  return resolved;
}

bool HostCanRun(const Target& target, std::string* why) {
  const bool wide = target.isa == Isa::kAvx512;
  std::string missing;
  if (wide ? !HasAvx512Level() : !HasAvx2Level()) {
    missing = wide ? "AVX-512 (F, BW, CD, DQ, VL)" : "AVX2 with FMA and BMI2";
  } else if (target.vnni && !(wide ? __builtin_cpu_supports("avx512vnni") != 0 : HasAvxVnni())) {
    missing = wide ? "AVX512-VNNI" : "AVX-VNNI";
  } else if (target.bf16 && __builtin_cpu_supports("avx512bf16") == 0) {
    missing = "AVX512-BF16";
  }
  if (missing.empty()) return true;
  const char* host = HasAvx512Level() ? "avx512" : HasAvx2Level() ? "avx2" : "older than avx2";
  *why = "code for " + target.text + " needs " + missing + ", which this host (" + host +
         ") does not have";
  return false;
}

}  // namespace hone::ir
