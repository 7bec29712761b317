#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Plain struct, std only: the runtime includes this file.
namespace hone::ir {

enum class Isa : uint8_t { kAvx2 = 0, kAvx512 = 1 };

/// What code is made for. Everything but the text is a function of the text (a table in
/// ir/target.cc), so that grouping, defaults and code are the same on every machine. Values are
/// nominal, never probed.
struct Target {
  std::string text;  ///< resolved: "cpu:avx512,threads=2"; `native` and N never stand here
  Isa isa = Isa::kAvx2;
  bool vnni = false;
  bool bf16 = false;
  int threads = 1;
  int lanes = 8;       ///< f32 lanes of a vector register
  int registers = 16;  ///< vector registers
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 16 << 20;
  std::string llvm_cpu;       ///< -mcpu, e.g. x86-64-v3
  std::string llvm_features;  ///< -mattr
};

/// Parses `cpu:avx2|avx512[+vnni+bf16],threads=N` (threads defaults to 1). On error returns false
/// and sets *error to a message that names the bad part and lists what is accepted. `native` is
/// refused here: resolve it with ResolveNative first.
bool ParseTarget(std::string_view text, Target* target, std::string* error);

/// Replaces `native` by this host's best ISA (cpuid) and a missing threads= by `threads`. Pure
/// text.
std::string ResolveNative(std::string_view text, int threads);

/// True when this host can run code made for the target; otherwise *why names both sides.
bool HostCanRun(const Target& target, std::string* why);

}  // namespace hone::ir
