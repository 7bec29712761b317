#pragma once

#include <cstdint>
#include <string>

#include "ir/target.h"

// std only: the runtime includes this file.
namespace hone::ir {

/// What `cuda:sm_…` stands for; a table in cuda_target.cc, one card for each chip. Read in the
/// folders of CUDA alone.
struct CudaTarget : TargetDetails {
  std::string chip;    ///< "sm_90a": what LLVM and the assembler call it
  int capability = 0;  ///< 90: compute capability 9.0
  bool exact = false;  ///< code runs on this capability alone; else on newer ones too
  int multiprocessors = 1;
  int registers = 65'536;          ///< of 32 bits, of an SM
  int most_threads = 2048;         ///< resident on an SM
  int64_t shared_bytes = 0;        ///< of an SM, those that blocks may have
  int64_t block_shared_bytes = 0;  ///< the most that one block may ask for
  int64_t l2_bytes = 0;
  double memory_bytes_per_second = 0;
  double flop_per_second = 0;         ///< f32, two of a multiply-add, without tensor cores
  double tensor_flop_per_second = 0;  ///< bf16 with f32 sums, dense
  double byte_op_per_second = 0;      ///< of tensor cores, bytes with i32 sums, dense
};

/// Bit of a package's header (TargetKind::PackageBits): machine code of a GPU, for the driver.
inline constexpr uint64_t kIsaCuda = uint64_t{1} << 32;

const TargetKind& CudaKind();

/// The best target of the table whose code a GPU of this compute capability runs, 90 for 9.0;
/// empty: none.
std::string CudaTargetFor(int capability);

}  // namespace hone::ir
