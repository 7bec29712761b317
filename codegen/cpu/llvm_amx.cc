#include "codegen/cpu/llvm_amx.h"

#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

#include "ir/cpu/tile_config.h"

namespace hone::codegen {
namespace {

llvm::Intrinsic::ID ProductOf(ir::DType first, ir::DType second) {
  if (first == ir::DType::kBF16) return llvm::Intrinsic::x86_tdpbf16ps;
  if (ir::IsUnsigned(first))
    return ir::IsUnsigned(second) ? llvm::Intrinsic::x86_tdpbuud : llvm::Intrinsic::x86_tdpbusd;
  return ir::IsUnsigned(second) ? llvm::Intrinsic::x86_tdpbsud : llvm::Intrinsic::x86_tdpbssd;
}

}  // namespace

void Amx::Configure(const TileShapes& shapes) {
  ir::TileConfig config;
  for (size_t k = 0; k < shapes.rows.size(); ++k) {
    config.rows[k] = shapes.rows[k];
    config.row_bytes[k] = shapes.row_bytes[k];
  }
  const llvm::StringRef bytes(reinterpret_cast<const char*>(&config), sizeof(config));
  llvm::GlobalVariable* const global = b_.CreateGlobalString(bytes, "tiles");
  global->setAlignment(llvm::Align(sizeof(config)));
  b_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {global});
}

void Amx::Release() {
  b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, llvm::ArrayRef<llvm::Type*>(),
                     llvm::ArrayRef<llvm::Value*>());
}

void Amx::Zero(int tile) {
  b_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {b_.getInt8(static_cast<uint8_t>(tile))});
}

void Amx::Load(int tile, llvm::Value* first, int64_t stride) {
  b_.CreateIntrinsic(
      llvm::Intrinsic::x86_tileloadd64, {},
      {b_.getInt8(static_cast<uint8_t>(tile)), first, b_.getInt64(static_cast<uint64_t>(stride))});
}

void Amx::Store(int tile, llvm::Value* first, int64_t stride) {
  b_.CreateIntrinsic(
      llvm::Intrinsic::x86_tilestored64, {},
      {b_.getInt8(static_cast<uint8_t>(tile)), first, b_.getInt64(static_cast<uint64_t>(stride))});
}

void Amx::Multiply(int sums, int first, ir::DType first_dtype, int second, ir::DType second_dtype) {
  const auto tile = [&](int number) { return b_.getInt8(static_cast<uint8_t>(number)); };
  b_.CreateIntrinsic(ProductOf(first_dtype, second_dtype), {},
                     {tile(sums), tile(first), tile(second)});
}

}  // namespace hone::codegen
