#pragma once

#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {

/// What a machine does in one instruction and LLVM has no operation for. Each emits at the
/// builder's insertion point; null: this machine has no such instruction for these types. Thread
/// safe.
class Instructions {
 public:
  virtual ~Instructions() = default;

  /// The nearest bf16 of f32 lanes, as lanes of 16 bits; denormals of f32 are taken for zeros.
  virtual llvm::Value* ToBf16(llvm::IRBuilder<>& /*b*/, llvm::Value* /*x*/) const {
    return nullptr;
  }
  /// `otherwise`, or x itself where x is not a number.
  virtual llvm::Value* UnlessNan(llvm::IRBuilder<>& /*b*/, llvm::Value* /*x*/,
                                 llvm::Value* /*otherwise*/) const {
    return nullptr;
  }
  /// Whether there are LookUp and ToMagnitude for a vector of this type.
  virtual bool HasTables(llvm::Type* /*type*/) const { return false; }
  /// For each lane one of the 16 f32 of a register: that of the low four bits of an i32 index.
  virtual llvm::Value* LookUp(llvm::IRBuilder<>& /*b*/, llvm::Value* /*table*/,
                              llvm::Value* /*index*/) const {
    return nullptr;
  }
  /// f32 lanes with a magnitude of at most `magnitude`, signs as they are.
  virtual llvm::Value* ToMagnitude(llvm::IRBuilder<>& /*b*/, llvm::Value* /*x*/,
                                   llvm::Value* /*magnitude*/) const {
    return nullptr;
  }
  /// Whether there is LookUpOfTwo: 16 lanes of i32.
  virtual bool HasWordTables() const { return false; }
  /// For each lane one of the 32 words of two registers: that of the low five bits of an index.
  virtual llvm::Value* LookUpOfTwo(llvm::IRBuilder<>& /*b*/, llvm::Value* /*low*/,
                                   llvm::Value* /*index*/, llvm::Value* /*high*/) const {
    return nullptr;
  }
  /// f32 that stand one behind the other from the pointer on, to those of 16 lanes that the mask
  /// (of i1) has; zeros to the others.
  virtual llvm::Value* Expand(llvm::IRBuilder<>& /*b*/, llvm::Value* /*pointer*/,
                              llvm::Value* /*mask*/) const {
    return nullptr;
  }
  /// x * 2^floor(exponent), f32 or f64 lanes; overflow and subnormal results rounded once.
  virtual llvm::Value* Scale(llvm::IRBuilder<>& /*b*/, llvm::Value* /*x*/,
                             llvm::Value* /*exponent*/) const {
    return nullptr;
  }
};

}  // namespace hone::codegen
