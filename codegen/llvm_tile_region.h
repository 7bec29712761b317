#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "llvm/IR/Instruction.h"

#include "codegen/affine.h"
#include "codegen/llvm_tile_unit.h"

namespace hone::codegen {

/// Loops whose sums stay in tile registers while they run.
struct TileRegion {
  /// A tile in memory: its first element, and elements from row to row.
  struct Place {
    int buffer = -1;
    Affine first;
    int64_t stride = 0;
    bool operator==(const Place&) const = default;
  };
  /// What a register is for, and what of a factor it holds, while nothing was loaded elsewhere.
  struct Factor {
    bool is_second = false;
    Place held;
    int64_t generation = -1;
  };
  std::vector<Place> sums;      ///< by register, the first ones
  std::vector<Factor> factors;  ///< by register, those that follow
  std::vector<Place> seconds;   ///< the tiles of second factors in one pass of the loops
  /// Loads of first and of second factors: registers of one shape take turns.
  std::array<size_t, 2> turns = {};
  TileShapes shapes;
};

/// Where the registers are given their shapes.
struct TileSite {
  llvm::Instruction* before = nullptr;
  TileShapes shapes;
};

}  // namespace hone::codegen
