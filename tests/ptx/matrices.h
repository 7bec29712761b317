#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tests/ptx/program.h"

// Instructions by which the 32 threads of a warp handle matrices together: ldmatrix of 16-bit
// elements, mma.m16n8k16 of f16 and bf16 with sums in f32, and mma.m16n8k32 of bytes with sums in
// s32. Written after the PTX ISA,
// "Warp-level Matrix Instructions", alone.
namespace hone::ptx {

bool IsOfMatrices(const Instruction& instruction);
/// Whether name and operands are known. Empty, or what is wrong.
std::string CheckMatrices(const Instruction& instruction);

/// What a name says.
struct MatrixForm {
  int count = 0;            ///< ldmatrix: .x1, .x2, .x4
  bool transposed = false;  ///< .trans
  bool bf16 = false;        ///< mma
  bool bytes = false;       ///< mma: of 8 bits
  bool a_signed = false, b_signed = false;
};
MatrixForm FormOf(const Instruction& instruction);

/// Registers of all threads of a warp, as mma takes and gives them.
struct WarpRegisters {
  std::array<std::array<uint32_t, 4>, 32> a = {};
  std::array<std::array<uint32_t, 2>, 32> b = {};
  std::array<std::array<float, 4>, 32> c = {}, d = {};
  std::array<std::array<uint32_t, 4>, 32> integer_c = {}, integer_d = {};
};
/// D = A * B + C. Products are exact, the order of a sum is not said: it is made in double.
void MultiplyAccumulate(bool bf16, WarpRegisters* registers);
/// The same of bytes, signed (.s8) or not (.u8), in integer_c and integer_d. Without .satfinite
/// sums wrap.
void MultiplyAccumulateBytes(bool a_signed, bool b_signed, WarpRegisters* registers);

}  // namespace hone::ptx
