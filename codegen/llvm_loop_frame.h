#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "llvm/IR/Instruction.h"

#include "codegen/affine.h"
#include "codegen/llvm_arith.h"
#include "ir/expr.h"

namespace hone::codegen {

/// A loop (or, outermost, the function) while its code is emitted: what is hoisted into it goes
/// before `marker` in its header, what is hoisted out of it before `entry`.
struct LoopFrame {
  llvm::Instruction* marker = nullptr;
  struct Pointer {
    int buffer;
    std::vector<Term> terms;
    llvm::Value* value;
  };
  std::unordered_multimap<uint64_t, Pointer> pointers;

  llvm::Instruction* entry = nullptr;      ///< the branch into the loop; null: the function
  const std::set<int>* written = nullptr;  ///< buffers stored to inside
  int branches = 0;                        ///< conditional branches around the loop
  struct InvariantLoad {
    int buffer;
    Affine index;
    bool operator==(const InvariantLoad&) const = default;
  };
  /// Values of expressions that do not change while the loop runs, by what they load.
  struct Invariant {
    const ir::ExprNode* expr;
    std::vector<InvariantLoad> loads;
    Value value;
  };
  std::vector<Invariant> invariants;
};

}  // namespace hone::codegen
