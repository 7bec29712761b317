#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "llvm/IR/Instructions.h"

#include "codegen/llvm_arith.h"

namespace hone::codegen {

/// One register: `lanes` elements (a power of two, `active` of them meant) at a constant offset.
struct RegisterSlot {
  llvm::AllocaInst* alloca = nullptr;
  int active = 1;
  int lanes = 1;
  llvm::Value* known = nullptr;  // its value now, while `generation` is current
  int64_t generation = -1;
};
/// Where a Fill of a register buffer stands: later slots are filled there too.
struct FillSite {
  llvm::Instruction* marker;
  int64_t elements;
  Value value;
};
struct BufferState {
  llvm::Value* base = nullptr;
  int64_t writes = 0;            // loads before the last store are not reused
  int64_t fill_generation = -1;  // of the last Fill of a register buffer
  bool is_flat = false;
  bool is_private = false;  // in the vector loop being emitted: every lane has its own
  std::map<int64_t, RegisterSlot> slots;
  std::map<int64_t, RegisterSlot> private_slots;
  std::vector<FillSite> fills;
};

}  // namespace hone::codegen
