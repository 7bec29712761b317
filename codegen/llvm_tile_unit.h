#pragma once

#include <array>
#include <cstdint>

#include "llvm/IR/IRBuilder.h"

#include "ir/dtype.h"
#include "ir/tile_product.h"

namespace hone::codegen {

/// Rows of each tile register, and bytes of a row; 0: it is not used.
struct TileShapes {
  std::array<uint8_t, ir::kTileRegisters> rows = {};
  std::array<uint8_t, ir::kTileRegisters> row_bytes = {};
  bool operator==(const TileShapes&) const = default;
};

/// The instructions of a machine that multiplies tiles (ir/tile_product.h). Each is emitted where
/// the builder of the phase points. Registers are numbers below ir::kTileRegisters.
class TileUnit {
 public:
  virtual ~TileUnit() = default;
  /// Gives the registers these shapes and zeros.
  virtual void Configure(const TileShapes& shapes) = 0;
  /// Back to the state before Configure.
  virtual void Release() = 0;
  virtual void Zero(int tile) = 0;
  /// Rows lie `stride` bytes apart.
  virtual void Load(int tile, llvm::Value* first, int64_t stride) = 0;
  virtual void Store(int tile, llvm::Value* first, int64_t stride) = 0;
  /// sums += first · second, of bytes or of bf16.
  virtual void Multiply(int sums, int first, ir::DType first_dtype, int second,
                        ir::DType second_dtype) = 0;
};

}  // namespace hone::codegen
