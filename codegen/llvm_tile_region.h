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

  /// Gives a register this shape; one too many counts and has none.
  void SetShape(size_t number, int64_t rows, int64_t row_bytes) {
    if (number >= shapes.rows.size()) return;
    shapes.rows[number] = static_cast<uint8_t>(rows);
    shapes.row_bytes[number] = static_cast<uint8_t>(row_bytes);
  }
  void AddFactor(bool is_second, int64_t rows, int64_t row_bytes) {
    SetShape(sums.size() + factors.size(), rows, row_bytes);
    factors.push_back({.is_second = is_second});
  }
  /// Whether a factor's register is for tiles of this shape.
  bool Fits(size_t factor, bool is_second, int64_t rows, int64_t row_bytes) const {
    const size_t number = sums.size() + factor;
    return factors[factor].is_second == is_second && number < shapes.rows.size() &&
           shapes.rows[number] == rows && shapes.row_bytes[number] == row_bytes;
  }
};

/// Where the registers are given their shapes.
struct TileSite {
  llvm::Instruction* before = nullptr;
  TileShapes shapes;
};

}  // namespace hone::codegen
