#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {

/// Loads lanes of 8 or 16 bits that lie side by side a few at a time: what copies them into the
/// panels of a dot product reads either words that are far apart, or streams that it interleaves.
/// `offsets` and `pointer` say where each lane lies, `scalar` is the type of one in memory, `mask`
/// which are wanted (null: all). Null: they do not lie so.
llvm::Value* LoadRuns(llvm::IRBuilder<>& builder, llvm::Type* scalar,
                      const std::vector<int64_t>& offsets, llvm::Value* mask,
                      const std::function<llvm::Value*(size_t lane)>& pointer);

}  // namespace hone::codegen
