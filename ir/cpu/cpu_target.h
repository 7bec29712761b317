#pragma once

#include <cstdint>
#include <string>

#include "ir/target.h"

// std only: the runtime includes this file.
namespace hone::ir {

enum class Isa : uint8_t { kAvx2 = 0, kAvx512 = 1 };

/// What `cpu:…` stands for; a table in cpu_target.cc. Read in the folders of the CPU alone.
struct CpuTarget : TargetDetails {
  Isa isa = Isa::kAvx2;
  bool vnni = false;
  bool bf16 = false;
  bool amx = false;    ///< tiles of bytes and bf16
  int lanes = 8;       ///< f32 lanes of a vector register
  int registers = 16;  ///< vector registers
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 16 << 20;
  std::string llvm_cpu;       ///< -mcpu, e.g. x86-64-v3
  std::string llvm_features;  ///< -mattr
};

/// Bits of a package's header: the instructions that its code needs (TargetKind::PackageBits).
inline constexpr uint64_t kIsaAvx2 = 1;    ///< x86-64-v3
inline constexpr uint64_t kIsaAvx512 = 2;  ///< x86-64-v4
inline constexpr uint64_t kIsaVnni = 4;
inline constexpr uint64_t kIsaBf16 = 8;
inline constexpr uint64_t kIsaAmx = 16;

/// What a CPU has of all that code may need.
struct CpuFeatures {
  bool avx2 = false;    ///< x86-64-v3
  bool avx512 = false;  ///< x86-64-v4
  bool avx_vnni = false, avx512_vnni = false, avx512_bf16 = false, amx = false;
};

/// Whether this CPU multiplies tiles of bytes and bf16 (AMX) and the kernel lets this process use
/// them. The first call asks it to; threads and forked children keep the leave, a program that is
/// executed asks again. Not for use within a sandbox that was not asked in before.
bool HasAmx();

/// Why a CPU cannot run code for `target` (whose text names it): both sides, and what helps. Empty:
/// it can.
std::string WhyNotOn(const CpuFeatures& cpu, const Target& target);

const TargetKind& CpuKind();

}  // namespace hone::ir
