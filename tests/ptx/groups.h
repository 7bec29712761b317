#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/ptx/program.h"

// Instructions of warpgroups, four warps from a multiple of four on: wgmma of f16 and bf16 with
// sums in f32, both factors in shared memory with a swizzle of 128 bytes. Written after the PTX
// ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions", alone.
namespace hone::ptx {

inline constexpr size_t kGroupSize = 128;

bool IsOfGroups(const Instruction& instruction);
/// Whether name and operands are known. Empty, or what is wrong.
std::string CheckGroups(const Instruction& instruction);

/// What the name of wgmma.mma_async says: m64nNk16.
struct GroupForm {
  int columns = 0;
  bool bf16 = false;
};
GroupForm GroupFormOf(const Instruction& instruction);

/// "Matrix Descriptor Format", for the one swizzle that is known.
struct GroupDescriptor {
  uint64_t start = 0, leading = 0, stride = 0;  ///< bytes

  /// Nothing where it says something else; `why` then says what.
  static std::optional<GroupDescriptor> Of(uint64_t bits, std::string* why);
  /// Where element k of row (of A, or column of B) i lies; `across`: the matrix is transposed.
  uint64_t AddressOf(int i, int k, bool across) const;
};

/// Element of the 64 rows that register `number` of a thread of the warpgroup is.
struct GroupPlace {
  int row = 0, column = 0;
};
GroupPlace PlaceOfSum(size_t thread, size_t number);

/// A number of 16 bits.
float NumberOfHalf(bool bf16, uint16_t bits);

}  // namespace hone::ptx
