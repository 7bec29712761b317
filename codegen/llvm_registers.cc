#include <algorithm>

#include "base/core/check.h"
#include "codegen/llvm_emitter.h"

// Register buffers: one alloca a vector, at a constant offset, which LLVM promotes to SSA values.
// Buffers whose accesses overlap with different shapes are emitted again as one alloca of elements
// ("flat").
namespace hone::codegen {

bool FunctionEmitter::RegisterPattern(int buffer, const Affine& index, LanePattern* pattern) {
  if (index_.DependsOnLane(index)) {
    *pattern = PatternOf(index);
  } else {
    pattern->base = index;
    pattern->offsets = {0};
  }
  if (!pattern->offsets.empty() && pattern->base.IsConst()) return true;
  Fail("register buffer '" + Of(buffer).name +
       "' has an index that is not constant after unrolling; unroll the loops it depends on, or "
       "keep it in scratch");
  return false;
}

llvm::AllocaInst* FunctionEmitter::NewAlloca(llvm::Type* type) {
  llvm::IRBuilder<>::InsertPointGuard restore(builder_);
  builder_.SetInsertPoint(&inner_->getEntryBlock(), inner_->getEntryBlock().begin());
  return builder_.CreateAlloca(type);
}

// One element for each lane.
FunctionEmitter::Slot* FunctionEmitter::FindPrivateSlot(int buffer, int64_t offset) {
  const auto [slot, is_new] = StateOf(buffer).private_slots.try_emplace(offset);
  if (is_new) {
    slot->second.lanes = vector_.lanes;
    slot->second.alloca = NewAlloca(arith_.TypeOf(Of(buffer).dtype, vector_.lanes));
    llvm::IRBuilder<>::InsertPointGuard restore(builder_);
    for (const FillSite& site : StateOf(buffer).fills) {
      if (offset >= site.elements) continue;
      builder_.SetInsertPoint(site.marker);
      builder_.CreateStore(arith_.Broadcast(site.value, vector_.lanes).llvm, slot->second.alloca);
    }
  }
  return &slot->second;
}

// The slot of exactly these elements; null (and the buffer a conflict) if another shape overlaps.
FunctionEmitter::Slot* FunctionEmitter::FindSlot(int buffer, const LanePattern& pattern) {
  BufferState& state = StateOf(buffer);
  if (state.is_private) return FindPrivateSlot(buffer, pattern.base.constant);
  const int active = static_cast<int>(pattern.offsets.size());
  const int64_t offset = pattern.base.constant;
  if (active > 1 && !pattern.contiguous) {
    conflicts_.insert(buffer);
    return nullptr;
  }
  const int lanes = active > 1 ? vector_.lanes : 1;
  auto next = state.slots.lower_bound(offset);
  if (next != state.slots.end() && next->first == offset) {
    if (next->second.active == active && next->second.lanes == lanes) return &next->second;
    conflicts_.insert(buffer);
    return nullptr;
  }
  const bool overlaps_next = next != state.slots.end() && next->first < offset + active;
  const bool overlaps_previous = next != state.slots.begin() &&
                                 std::prev(next)->first + std::prev(next)->second.active > offset;
  if (overlaps_next || overlaps_previous) {
    conflicts_.insert(buffer);
    return nullptr;
  }
  Slot slot;
  slot.active = active;
  slot.lanes = lanes;
  slot.alloca = NewAlloca(arith_.TypeOf(Of(buffer).dtype, lanes));
  llvm::IRBuilder<>::InsertPointGuard restore(builder_);
  for (const FillSite& site : state.fills) {
    if (offset >= site.elements) continue;
    builder_.SetInsertPoint(site.marker);
    builder_.CreateStore(arith_.Broadcast(site.value, lanes).llvm, slot.alloca);
  }
  if (state.fill_generation == generation_ && offset < state.fills.back().elements &&
      llvm::isa<llvm::Constant>(state.fills.back().value.llvm)) {
    slot.known = arith_.Broadcast(state.fills.back().value, lanes).llvm;
    slot.generation = generation_;
  }
  return &state.slots.emplace(offset, slot).first->second;
}

Value FunctionEmitter::LoadRegister(int buffer, const Affine& index) {
  const ir::DType dtype = Of(buffer).dtype;
  LanePattern pattern;
  const Value poison{llvm::PoisonValue::get(arith_.TypeOf(dtype, 1)), dtype, 1};
  if (!RegisterPattern(buffer, index, &pattern)) return poison;
  if (StateOf(buffer).is_flat && !StateOf(buffer).is_private) return LoadFlat(buffer, pattern);
  Slot* slot = FindSlot(buffer, pattern);
  if (slot == nullptr) return poison;
  if (slot->generation != generation_) {
    slot->known = builder_.CreateLoad(slot->alloca->getAllocatedType(), slot->alloca);
    slot->generation = generation_;
  }
  return {slot->known, dtype, slot->lanes};
}

void FunctionEmitter::StoreRegister(int buffer, const Affine& index, const Value& value) {
  LanePattern pattern;
  if (!RegisterPattern(buffer, index, &pattern)) return;
  if (StateOf(buffer).is_flat && !StateOf(buffer).is_private) {
    StoreFlat(buffer, pattern, value);
    return;
  }
  Slot* slot = FindSlot(buffer, pattern);
  if (slot == nullptr) return;
  Value stored = value;
  if (slot->lanes == 1 && value.lanes > 1) {
    // Lanes store one after the other: the last one stays.
    const uint64_t last = static_cast<uint64_t>(vector_.active - 1);
    if (mask_ != nullptr) {
      Fail("register buffer '" + Of(buffer).name + "' takes one element from masked lanes");
      return;
    }
    stored = {builder_.CreateExtractElement(value.llvm, last), value.dtype, 1};
  }
  stored = arith_.Broadcast(stored, slot->lanes);
  if (mask_ != nullptr) {
    const int mask_lanes = slot->lanes == 1 ? 1 : vector_.lanes;
    llvm::Value* wanted = mask_lanes == 1 ? arith_.AnyLane(mask_) : mask_;
    const Value old = LoadRegister(buffer, index);
    stored = arith_.Select({wanted, ir::DType::kBool, mask_lanes}, stored, old);
  }
  builder_.CreateStore(stored.llvm, slot->alloca);
  slot->known = stored.llvm;
  slot->generation = generation_;
}

// Flat memory holds bool as bytes: vectors of bits would lie otherwise than single ones.
Value FunctionEmitter::FromFlat(llvm::Value* raw, ir::DType dtype, int lanes) {
  return ir::IsBool(dtype) ? arith_.FromMemory(raw, dtype, lanes) : Value{raw, dtype, lanes};
}

llvm::Value* FunctionEmitter::ToFlat(const Value& value) {
  return ir::IsBool(value.dtype) ? arith_.ToMemory(value) : value.llvm;
}

llvm::Type* FunctionEmitter::FlatType(ir::DType dtype, int lanes) {
  return ir::IsBool(dtype) ? arith_.MemoryType(dtype, lanes) : arith_.TypeOf(dtype, lanes);
}

llvm::Value* FunctionEmitter::FlatPointer(int buffer, int64_t offset) {
  return builder_.CreateConstGEP1_64(FlatType(Of(buffer).dtype, 1), StateOf(buffer).base,
                                     static_cast<uint64_t>(offset));
}

Value FunctionEmitter::LoadFlat(int buffer, const LanePattern& pattern) {
  const ir::DType dtype = Of(buffer).dtype;
  const int64_t offset = pattern.base.constant;
  const int active = static_cast<int>(pattern.offsets.size());
  if (active == 1) {
    return FromFlat(builder_.CreateLoad(FlatType(dtype, 1), FlatPointer(buffer, offset)), dtype, 1);
  }
  llvm::Type* type = FlatType(dtype, vector_.lanes);
  if (pattern.contiguous && active == vector_.lanes) {
    return FromFlat(builder_.CreateLoad(type, FlatPointer(buffer, offset)), dtype, active);
  }
  llvm::Value* result = llvm::Constant::getNullValue(type);
  for (int k = 0; k < active; ++k) {
    llvm::Value* element = builder_.CreateLoad(
        FlatType(dtype, 1), FlatPointer(buffer, offset + pattern.offsets[static_cast<size_t>(k)]));
    result = builder_.CreateInsertElement(result, element, static_cast<uint64_t>(k));
  }
  return FromFlat(result, dtype, vector_.lanes);
}

void FunctionEmitter::StoreFlat(int buffer, const LanePattern& pattern, const Value& value) {
  const int64_t offset = pattern.base.constant;
  const int active = static_cast<int>(pattern.offsets.size());
  const bool one = active == 1 && value.lanes == 1;
  Value stored = one ? value : arith_.Broadcast(value, vector_.lanes);
  if (mask_ != nullptr) {
    const Value old = LoadFlat(buffer, pattern);
    llvm::Value* wanted = one ? arith_.AnyLane(mask_) : mask_;
    stored = arith_.Select({wanted, ir::DType::kBool, one ? 1 : vector_.lanes}, stored, old);
  }
  llvm::Value* raw = ToFlat(stored);
  if (one || (pattern.contiguous && active == vector_.lanes)) {
    builder_.CreateStore(raw, FlatPointer(buffer, offset));
    return;
  }
  for (int k = 0; k < vector_.active; ++k) {
    const int64_t distance = active == 1 ? 0 : pattern.offsets[static_cast<size_t>(k)];
    builder_.CreateStore(builder_.CreateExtractElement(raw, static_cast<uint64_t>(k)),
                         FlatPointer(buffer, offset + distance));
  }
}

void FunctionEmitter::FillRegister(int buffer, int64_t elements, const Value& value) {
  BufferState& state = StateOf(buffer);
  if (state.is_flat && !state.is_private) {
    for (int64_t k = 0; k < elements; ++k) {
      builder_.CreateStore(ToFlat(value), FlatPointer(buffer, k));
    }
    return;
  }
  for (auto& [offset, slot] : state.is_private ? state.private_slots : state.slots) {
    if (offset >= elements) continue;
    slot.known = arith_.Broadcast(value, slot.lanes).llvm;
    slot.generation = generation_;
    builder_.CreateStore(slot.known, slot.alloca);
  }
  state.fills.push_back({Marker(), elements, value});
  state.fill_generation = generation_;
}

}  // namespace hone::codegen
