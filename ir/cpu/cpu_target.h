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

const TargetKind& CpuKind();

}  // namespace hone::ir
