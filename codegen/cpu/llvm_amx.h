#pragma once

#include "codegen/llvm_tile_unit.h"

namespace hone::codegen {

/// Advanced Matrix Extensions: palette 1, eight registers of 16 rows of 64 bytes.
class Amx final : public TileUnit {
 public:
  /// The builder points into a function with the features amx-tile, amx-int8 and amx-bf16, and
  /// outlives this.
  explicit Amx(llvm::IRBuilder<>& builder) : b_(builder) {}

  void Configure(const TileShapes& shapes) override;
  void Release() override;
  void Zero(int tile) override;
  void Load(int tile, llvm::Value* first, int64_t stride) override;
  void Store(int tile, llvm::Value* first, int64_t stride) override;
  void Multiply(int sums, int first, ir::DType first_dtype, int second,
                ir::DType second_dtype) override;

 private:
  llvm::IRBuilder<>& b_;
};

}  // namespace hone::codegen
