#include <algorithm>
#include <set>

#include "llvm/Analysis/VectorUtils.h"

#include "base/core/check.h"
#include "codegen/llvm_emitter.h"
#include "codegen/llvm_runs.h"

// Loads and stores of argument, scratch and table buffers.
namespace hone::codegen {

using ir::DType;
using ir::Scope;

namespace {

/// The one active lane of a constant mask; -1: another mask.
int OnlyLane(llvm::Value* mask) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  const auto* type = llvm::cast<llvm::FixedVectorType>(mask->getType());
  int lane = -1;
  for (unsigned i = 0; constant != nullptr && i < type->getNumElements(); ++i) {
    const llvm::Constant* active = constant->getAggregateElement(i);
    if (active == nullptr || (!active->isOneValue() && !active->isZeroValue())) return -1;
    if (active->isZeroValue()) continue;
    if (lane >= 0) return -1;
    lane = static_cast<int>(i);
  }
  return lane;
}

llvm::Align ElementAlign(DType dtype) {
  return llvm::Align(static_cast<uint64_t>(ir::SizeOf(dtype)));
}

/// Most elements, in vectors, that a shuffled load may span.
constexpr int64_t kMaxShuffleVectors = 4;

}  // namespace

size_t LoadKeyHash::operator()(const LoadKey& key) const {
  uint64_t hash = HashOf(key.index) + static_cast<uint64_t>(key.buffer) * 0x9E3779B97F4A7C15u;
  hash ^= reinterpret_cast<uintptr_t>(key.guard) >> 4;
  hash ^= reinterpret_cast<uintptr_t>(key.mask) << 3;
  return static_cast<size_t>(hash ^ (static_cast<uint64_t>(key.active) << 56));
}

bool FunctionEmitter::InBounds(int buffer, const ir::Interval& range, int64_t elements) const {
  return range.low >= 0 && range.high + elements <= Of(buffer).elements;
}

// The mask of a vector access: the If's and select's lanes, without those beyond a loop's extent.
llvm::Value* FunctionEmitter::ActiveMask() {
  if (vector_.active == vector_.lanes) return mask_;
  llvm::SmallVector<llvm::Constant*, 64> lanes;
  for (int k = 0; k < vector_.lanes; ++k) lanes.push_back(builder_.getInt1(k < vector_.active));
  llvm::Value* active = llvm::ConstantVector::get(lanes);
  return mask_ == nullptr ? active : builder_.CreateAnd(mask_, active);
}

llvm::Value* FunctionEmitter::WithGuard(llvm::Value* mask) {
  if (guard_ == nullptr) return mask;
  llvm::Value* splat = builder_.CreateVectorSplat(static_cast<unsigned>(vector_.lanes), guard_);
  return mask == nullptr ? splat : builder_.CreateAnd(mask, splat);
}

Value FunctionEmitter::Load(int buffer, const Affine& index) {
  if (IsRegister(buffer)) return LoadRegister(buffer, index);
  Value constant;
  if (TableConstant(buffer, index, &constant)) return constant;
  const LoadKey key{buffer, index, guard_, mask_, index_.DependsOnLane(index) ? vector_.active : 1};
  const auto found = available_.find(key);
  if (found != available_.end() && found->second.generation == generation_ &&
      found->second.writes == StateOf(buffer).writes) {
    return found->second.value;
  }
  const Value value = LoadMemory(buffer, index);
  available_[key] = {value, generation_, StateOf(buffer).writes};
  return value;
}

bool FunctionEmitter::TableConstant(int buffer, const Affine& index, Value* result) {
  const ir::Buffer& table = Of(buffer);
  if (table.scope != Scope::kTable) return false;
  const auto at = [&](int64_t offset) {
    const bool inside = offset >= 0 && offset < static_cast<int64_t>(table.table.size());
    return arith_.Number(table.dtype, inside ? table.table[static_cast<size_t>(offset)] : 0);
  };
  if (index.IsConst()) {
    *result = at(index.constant);
    return true;
  }
  if (!index_.DependsOnLane(index)) return false;
  const LanePattern pattern = PatternOf(index);
  if (pattern.offsets.empty() || !pattern.base.IsConst()) return false;
  llvm::SmallVector<llvm::Constant*, 64> lanes;
  for (int k = 0; k < vector_.lanes; ++k) {
    const int64_t offset = pattern.offsets[static_cast<size_t>(std::min(k, vector_.active - 1))];
    lanes.push_back(llvm::cast<llvm::Constant>(at(pattern.base.constant + offset).llvm));
  }
  *result = {llvm::ConstantVector::get(lanes), table.dtype, vector_.lanes};
  return true;
}

Value FunctionEmitter::LoadMemory(int buffer, const Affine& index) {
  if (Of(buffer).swizzle != ir::Swizzle::kNone)
    Fail("buffer '" + Of(buffer).name + "' is swizzled: matrices are multiplied from there alone");
  if (!index_.DependsOnLane(index)) return LoadScalar(buffer, index);
  const LanePattern pattern = PatternOf(index);
  if (pattern.contiguous) return LoadContiguous(buffer, pattern.base);
  if (std::optional<Value> narrow = LoadNarrow(buffer, pattern)) return *narrow;
  const bool masked = mask_ != nullptr || guard_ != nullptr;
  if (!pattern.offsets.empty() && (!masked || IsShortStride(pattern))) {
    return LoadShuffled(buffer, pattern);
  }
  return LoadGathered(buffer, index);
}

// What is not to be loaded is replaced by the buffer's first element: cheaper than a branch.
Value FunctionEmitter::LoadScalar(int buffer, const Affine& index) {
  const DType dtype = Of(buffer).dtype;
  llvm::Value* pointer = Pointer(buffer, index);
  const bool guarded = guard_ != nullptr || mask_ != nullptr;
  if (guarded && !InBounds(buffer, index_.Bounds(index), 1)) {
    llvm::Value* wanted = guard_;
    if (mask_ != nullptr) {
      llvm::Value* any = arith_.AnyLane(mask_);
      wanted = wanted == nullptr ? any : builder_.CreateAnd(wanted, any);
    }
    const bool constant = Of(buffer).read_only || Of(buffer).scope == Scope::kTable;
    if (function_->has_threads() && !constant) {
      llvm::Value* raw =
          LoadWhere(wanted, pointer, arith_.MemoryType(dtype, 1), ElementAlign(dtype));
      return arith_.FromMemory(raw, dtype, 1);
    }
    pointer = builder_.CreateSelect(wanted, pointer, StateOf(buffer).base);
  }
  llvm::Value* raw =
      builder_.CreateAlignedLoad(arith_.MemoryType(dtype, 1), pointer, ElementAlign(dtype));
  return arith_.FromMemory(raw, dtype, 1);
}

// By a branch: another thread may be writing the first element. Zeros where it is not wanted.
llvm::Value* FunctionEmitter::LoadWhere(llvm::Value* wanted, llvm::Value* pointer, llvm::Type* type,
                                        llvm::Align align) {
  llvm::LLVMContext& context = builder_.getContext();
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  auto* then = llvm::BasicBlock::Create(context, "load", inner_);
  auto* merge = llvm::BasicBlock::Create(context, "loaded", inner_);
  builder_.CreateCondBr(wanted, then, merge);
  builder_.SetInsertPoint(then);
  llvm::Value* element = builder_.CreateAlignedLoad(type, pointer, align);
  builder_.CreateBr(merge);
  builder_.SetInsertPoint(merge);
  llvm::PHINode* raw = builder_.CreatePHI(type, 2);
  raw->addIncoming(llvm::Constant::getNullValue(type), before);
  raw->addIncoming(element, then);
  return raw;
}

std::optional<Value> FunctionEmitter::LoadNarrow(int buffer, const LanePattern& pattern) {
  const DType dtype = Of(buffer).dtype;
  const auto lanes = static_cast<size_t>(vector_.lanes);
  if (ir::SizeOf(dtype) > 2 || guard_ != nullptr || pattern.offsets.size() != lanes)
    return std::nullopt;
  llvm::Value* raw = LoadRuns(
      builder_, arith_.MemoryType(dtype, 1), pattern.offsets, mask_,
      [&](size_t lane) { return Pointer(buffer, pattern.base + Affine(pattern.offsets[lane])); });
  if (raw == nullptr) return std::nullopt;
  raw = builder_.CreateBitCast(raw, arith_.MemoryType(dtype, vector_.lanes));
  return arith_.FromMemory(raw, dtype, vector_.lanes);
}

Value FunctionEmitter::LoadContiguous(int buffer, const Affine& base) {
  const DType dtype = Of(buffer).dtype;
  const int lanes = vector_.lanes;
  llvm::Type* type = arith_.MemoryType(dtype, lanes);
  llvm::Value* pointer = Pointer(buffer, base);
  const bool free = mask_ == nullptr && guard_ == nullptr &&
                    (vector_.active == lanes || InBounds(buffer, index_.Bounds(base), lanes));
  llvm::Value* raw = nullptr;
  if (free) {
    raw = builder_.CreateAlignedLoad(type, pointer, AlignOf(buffer, base));
  } else if (mask_ == nullptr && vector_.active == lanes && function_->has_threads()) {
    // All lanes or none: one instruction, where a masked load would be one for each lane.
    raw = LoadWhere(guard_, pointer, type, AlignOf(buffer, base));
  } else {
    raw = builder_.CreateMaskedLoad(type, pointer, ElementAlign(dtype), WithGuard(ActiveMask()),
                                    llvm::Constant::getNullValue(type));
  }
  return arith_.FromMemory(raw, dtype, lanes);
}

/// Whether a few vectors cover all lanes and no two lanes read one element, so that the pieces'
/// masks follow from the lanes'.
bool FunctionEmitter::IsShortStride(const LanePattern& pattern) const {
  const auto [low, high] = std::minmax_element(pattern.offsets.begin(), pattern.offsets.end());
  const int64_t span = *high - *low + 1;
  const auto begin = pattern.offsets.begin();
  return span >= vector_.lanes && span <= kMaxShuffleVectors * vector_.lanes &&
         std::set<int64_t>(begin, begin + vector_.active).size() ==
             static_cast<size_t>(vector_.active);
}

/// The elements [first, first + width) past the lowest lane; those that no wanted lane reads are
/// not touched.
llvm::Value* FunctionEmitter::LoadPiece(llvm::Type* type, llvm::Value* pointer, DType dtype,
                                        const LanePattern& pattern, int64_t first, int64_t width) {
  llvm::Value* mask = WithGuard(ActiveMask());
  if (mask_ == nullptr && guard_ == nullptr)
    return builder_.CreateAlignedLoad(type, pointer, ElementAlign(dtype));
  const int lanes = vector_.lanes;
  llvm::SmallVector<int, 64> wanted(static_cast<size_t>(width), lanes);
  for (int k = 0; k < vector_.active; ++k) {
    const int64_t at = pattern.offsets[static_cast<size_t>(k)] - first;
    if (at >= 0 && at < width) wanted[static_cast<size_t>(at)] = k;
  }
  llvm::Value* none = llvm::Constant::getNullValue(mask->getType());
  return builder_.CreateMaskedLoad(type, pointer, ElementAlign(dtype),
                                   builder_.CreateShuffleVector(mask, none, wanted),
                                   llvm::Constant::getNullValue(type));
}

// Lanes at fixed distances (strides, repeats, reversals): whole vectors that cover them, then
// shuffles. Nothing outside the first and last lane is touched.
Value FunctionEmitter::LoadShuffled(int buffer, const LanePattern& pattern) {
  const DType dtype = Of(buffer).dtype;
  const auto [low, high] = std::minmax_element(pattern.offsets.begin(), pattern.offsets.end());
  const int64_t span = *high - *low + 1;
  int64_t width = vector_.lanes;
  while (width > span) width /= 2;
  llvm::Type* scalar = arith_.MemoryType(dtype, 1);
  llvm::Type* type = arith_.MemoryType(dtype, vector_.lanes);
  const bool masked = mask_ != nullptr || guard_ != nullptr;
  llvm::Value* result = masked ? static_cast<llvm::Value*>(llvm::Constant::getNullValue(type))
                               : llvm::PoisonValue::get(type);
  if (span > kMaxShuffleVectors * vector_.lanes || width == 1) {
    for (int k = 0; k < vector_.active; ++k) {
      const Affine at = pattern.base + Affine(pattern.offsets[static_cast<size_t>(k)]);
      llvm::Value* element =
          builder_.CreateAlignedLoad(scalar, Pointer(buffer, at), ElementAlign(dtype));
      result = builder_.CreateInsertElement(result, element, static_cast<uint64_t>(k));
    }
    return arith_.FromMemory(result, dtype, vector_.lanes);
  }
  llvm::Type* piece_type = llvm::FixedVectorType::get(scalar, static_cast<unsigned>(width));
  for (int64_t done = 0; done < span; done += width) {
    const int64_t start = std::min(done, span - width);
    const Affine at = pattern.base + Affine(*low + start);
    llvm::Value* piece =
        LoadPiece(piece_type, Pointer(buffer, at), dtype, pattern, *low + start, width);
    // Lanes [0, lanes) of the shuffle below are the result so far, the piece follows.
    llvm::SmallVector<int, 64> widen;
    for (int k = 0; k < vector_.lanes; ++k) widen.push_back(k < width ? k : -1);
    if (width < vector_.lanes) piece = builder_.CreateShuffleVector(piece, widen);
    llvm::SmallVector<int, 64> choose;
    for (int k = 0; k < vector_.lanes; ++k) {
      if (k >= vector_.active) {
        choose.push_back(-1);
        continue;
      }
      const int64_t want = pattern.offsets[static_cast<size_t>(k)] - *low;
      const bool here = want >= done && want < done + width;
      choose.push_back(here ? static_cast<int>(vector_.lanes + want - start) : k);
    }
    result = builder_.CreateShuffleVector(result, piece, choose);
  }
  return arith_.FromMemory(result, dtype, vector_.lanes);
}

llvm::Value* FunctionEmitter::LanePointers(int buffer, const Affine& index) {
  Affine uniform(index.constant);
  Affine varying;
  for (const Term& term : index.terms) {
    (index_.atom(term.atom).lane ? varying : uniform).terms.push_back(term);
  }
  const int64_t size = ir::SizeOf(Of(buffer).dtype);
  llvm::Value* offsets = MaterialiseVector(Scale(varying, size), 64);
  return builder_.CreateGEP(builder_.getInt8Ty(), Pointer(buffer, uniform), offsets);
}

// 16 bytes of a table of 256 at a time: 64 words of four bytes lie in four registers.
llvm::Value* FunctionEmitter::LoadFromByteTable(int buffer, const Affine& index) {
  llvm::Type* words = llvm::FixedVectorType::get(builder_.getInt32Ty(), 16);
  llvm::Value* table[4];
  for (int64_t k = 0; k < 4; ++k)
    table[k] = builder_.CreateAlignedLoad(words, Pointer(buffer, Affine(64 * k)), llvm::Align(1));
  const auto splat = [&](int64_t value) { return llvm::ConstantInt::get(words, value); };
  const auto permute = [&](llvm::Value* low, llvm::Value* at, llvm::Value* high) {
    return function_->instructions().LookUpOfTwo(builder_, low, at, high);
  };
  llvm::Value* all = MaterialiseVector(index, 32);
  llvm::SmallVector<llvm::Value*, 4> parts;
  for (int first = 0; first < vector_.lanes; first += 16) {
    llvm::SmallVector<int, 16> lanes;
    for (int k = 0; k < 16; ++k) lanes.push_back(first + k);
    llvm::Value* bytes = vector_.lanes == 16 ? all : builder_.CreateShuffleVector(all, lanes);
    llvm::Value* at = builder_.CreateLShr(bytes, splat(2));
    llvm::Value* high = builder_.CreateICmpUGT(bytes, splat(127));
    llvm::Value* word = builder_.CreateSelect(high, permute(table[2], at, table[3]),
                                              permute(table[0], at, table[1]));
    llvm::Value* shift = builder_.CreateShl(builder_.CreateAnd(bytes, splat(3)), splat(3));
    parts.push_back(builder_.CreateTrunc(builder_.CreateLShr(word, shift),
                                         llvm::FixedVectorType::get(builder_.getInt8Ty(), 16)));
  }
  return llvm::concatenateVectors(builder_, parts);
}

Value FunctionEmitter::LoadGathered(int buffer, const Affine& index) {
  const DType dtype = Of(buffer).dtype;
  const bool table = Of(buffer).elements == 256 && Of(buffer).read_only && ir::IsInteger(dtype) &&
                     ir::SizeOf(dtype) == 1 && ir::Interval{0, 255}.Contains(index_.Bounds(index));
  if (table && function_->instructions().HasWordTables() && vector_.lanes % 16 == 0)
    return arith_.FromMemory(LoadFromByteTable(buffer, index), dtype, vector_.lanes);
  llvm::Type* type = arith_.MemoryType(dtype, vector_.lanes);
  llvm::Value* pointers = LanePointers(buffer, index);
  llvm::Value* raw = nullptr;
  if (mask_ != nullptr || guard_ != nullptr) {
    raw = builder_.CreateMaskedGather(type, pointers, ElementAlign(dtype), WithGuard(ActiveMask()),
                                      llvm::Constant::getNullValue(type));
  } else {
    raw = llvm::PoisonValue::get(type);
    for (uint64_t k = 0; k < static_cast<uint64_t>(vector_.active); ++k) {
      llvm::Value* element = builder_.CreateAlignedLoad(arith_.MemoryType(dtype, 1),
                                                        builder_.CreateExtractElement(pointers, k),
                                                        ElementAlign(dtype));
      raw = builder_.CreateInsertElement(raw, element, k);
    }
  }
  return arith_.FromMemory(raw, dtype, vector_.lanes);
}

void FunctionEmitter::Store(int buffer, const Affine& index, const Value& value) {
  if (IsRegister(buffer)) {
    StoreRegister(buffer, index, value);
    return;
  }
  if (Of(buffer).scope == Scope::kTable) {
    Fail("buffer '" + Of(buffer).name + "' is stored to but is a table");
    return;
  }
  ++StateOf(buffer).writes;
  StoreMemory(buffer, index, value);
}

void FunctionEmitter::StoreMemory(int buffer, const Affine& index, const Value& value) {
  const DType dtype = Of(buffer).dtype;
  const bool vector_index = index_.DependsOnLane(index);
  if (!vector_index && value.lanes == 1 && mask_ == nullptr) {
    llvm::Value* raw = arith_.ToMemory(value);
    builder_.CreateAlignedStore(raw, Pointer(buffer, index), ElementAlign(dtype));
    return;
  }
  const Value vector = arith_.Broadcast(value, vector_.lanes);
  llvm::Value* raw = arith_.ToMemory(vector);
  const LanePattern pattern = PatternOf(index);
  if (Of(buffer).swizzle != ir::Swizzle::kNone && vector_index) {
    const auto bytes = static_cast<uint64_t>(ir::SizeOf(dtype) * vector_.lanes);
    if (!pattern.contiguous || AlignOf(buffer, pattern.base).value() < bytes)
      Fail("buffer '" + Of(buffer).name + "' is swizzled: vectors must be whole 16 bytes");
  }
  if (vector_index && pattern.contiguous) {
    llvm::Value* pointer = Pointer(buffer, pattern.base);
    llvm::Value* mask = ActiveMask();
    if (mask == nullptr) {
      builder_.CreateAlignedStore(raw, pointer, AlignOf(buffer, pattern.base));
    } else if (const int lane = OnlyLane(mask); lane >= 0) {
      // LLVM 22 would write four bytes where a narrowed vector has one active lane.
      llvm::Value* at = builder_.CreateConstGEP1_64(raw->getType()->getScalarType(), pointer, lane);
      builder_.CreateAlignedStore(builder_.CreateExtractElement(raw, lane), at,
                                  ElementAlign(dtype));
    } else {
      builder_.CreateMaskedStore(raw, pointer, ElementAlign(dtype), mask);
    }
    return;
  }
  StoreLanes(buffer, index, pattern, raw);
}

// One element a lane, in lane order (the last one to an address stays).
void FunctionEmitter::StoreLanes(int buffer, const Affine& index, const LanePattern& pattern,
                                 llvm::Value* raw) {
  const DType dtype = Of(buffer).dtype;
  if (mask_ != nullptr) {
    builder_.CreateMaskedScatter(raw, LanePointers(buffer, index), ElementAlign(dtype),
                                 ActiveMask());
    return;
  }
  llvm::Value* pointers = pattern.offsets.empty() ? LanePointers(buffer, index) : nullptr;
  for (int k = 0; k < vector_.active; ++k) {
    llvm::Value* pointer = nullptr;
    if (pointers != nullptr) {
      pointer = builder_.CreateExtractElement(pointers, static_cast<uint64_t>(k));
    } else {
      pointer = Pointer(buffer, pattern.base + Affine(pattern.offsets[static_cast<size_t>(k)]));
    }
    llvm::Value* element = builder_.CreateExtractElement(raw, static_cast<uint64_t>(k));
    builder_.CreateAlignedStore(element, pointer, ElementAlign(dtype));
  }
}

}  // namespace hone::codegen
