#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/affine.h"
#include "codegen/llvm_arith.h"

// What the emitter has loaded and may use again: while control flow goes straight on (`generation`)
// and nothing was stored to the buffer (`writes`).
namespace hone::codegen {

struct LoadKey {
  int buffer;
  Affine index;
  llvm::Value* guard;
  llvm::Value* mask;
  int active;
  bool operator==(const LoadKey&) const = default;
};
struct LoadKeyHash {
  size_t operator()(const LoadKey& key) const;
};
struct AvailableLoad {
  Value value;
  int64_t generation;
  int64_t writes;
};

/// Matrices that a warp has fetched, by the address of this lane's row.
struct FetchedMatrices {
  int buffer, count;
  Affine row;
  int64_t generation, writes;
  std::vector<llvm::Value*> words;
};

}  // namespace hone::codegen
