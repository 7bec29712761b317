#include <algorithm>

#include "base/core/check.h"
#include "codegen/llvm_emitter.h"

// Values of index sums and addresses. Each is computed in the header of the innermost loop it
// depends on, so that the loops inside see one pointer and constant displacements.
namespace hone::codegen {

using ir::BinaryOp;
using ir::DType;

namespace {

bool IsBoolKind(AtomKind kind) {
  return kind == AtomKind::kGeZero || kind == AtomKind::kEqZero || kind == AtomKind::kAnd ||
         kind == AtomKind::kOr;
}

bool FitsI32(const ir::Interval& range) {
  return ir::Interval{INT32_MIN, INT32_MAX}.Contains(range);
}

}  // namespace

// Nothing to do when the range of the new atom was a single number.
void FunctionEmitter::SetAtomValue(const Affine& atom, llvm::Value* value) {
  if (atom.IsConst()) return;
  const auto id = static_cast<size_t>(atom.terms[0].atom);
  if (atom_values_.size() <= id) atom_values_.resize(id + 64, nullptr);
  atom_values_[id] = value;
}

llvm::Value* FunctionEmitter::AtomValue(int id) {
  if (atom_values_.size() <= static_cast<size_t>(id)) {
    atom_values_.resize(static_cast<size_t>(id) + 64, nullptr);
  }
  if (llvm::Value* known = atom_values_[static_cast<size_t>(id)]) return known;
  const Atom atom = index_.atom(id);  // a copy: making the value may add atoms
  HONE_CHECK(atom.kind != AtomKind::kVariable && atom.kind != AtomKind::kOpaque)
      << "an atom without a value";
  if (atom.depth == kDepthHere) return MakeAtomValue(atom);
  llvm::IRBuilder<>::InsertPointGuard restore(builder_);
  builder_.SetInsertPoint(frames_[static_cast<size_t>(atom.depth)].marker);
  llvm::Value* value = MakeAtomValue(atom);
  atom_values_[static_cast<size_t>(id)] = value;
  return value;
}

// i1 for comparisons and logic, i64 for other scalars; lane-dependent ones are vectors of i1, i32
// or i64.
llvm::Value* FunctionEmitter::MakeAtomValue(const Atom& atom) {
  unsigned bits = 64;
  if (atom.lane) {
    const bool small = FitsI32(index_.Bounds(atom.a)) && FitsI32(index_.Bounds(atom.b)) &&
                       FitsI32(index_.Bounds(atom.c)) && FitsI32(atom.range);
    bits = small ? 32 : 64;
  }
  const DType dtype = bits == 32 ? DType::kI32 : DType::kI64;
  const int lanes = atom.lane ? vector_.lanes : 1;
  const auto operand = [&](const Affine& a) {
    return Value{atom.lane ? MaterialiseVector(a, bits) : MaterialiseScalar(a), dtype, lanes};
  };
  const auto zero = arith_.Int(dtype, 0);
  const auto binary = [&](BinaryOp op) {
    Value a = operand(atom.a);
    Value b = operand(atom.b);
    // A GPU divides 64 bits in several times as many instructions, and holds them in two registers.
    const ir::Interval small = {0, INT32_MAX};
    if (function_->has_threads() && !atom.lane && small.Contains(index_.Bounds(atom.a)) &&
        small.Contains(index_.Bounds(atom.b)) && op != BinaryOp::kMul) {
      a.llvm = builder_.CreateTrunc(a.llvm, builder_.getInt32Ty());
      b.llvm = builder_.CreateTrunc(b.llvm, builder_.getInt32Ty());
      a.dtype = b.dtype = DType::kU32;
      return builder_.CreateZExt(arith_.Binary(op, a, b).llvm, builder_.getInt64Ty());
    }
    // Unsigned division is half the code.
    if (index_.Bounds(atom.a).low >= 0 && index_.Bounds(atom.b).low >= 0) {
      a.dtype = b.dtype = bits == 32 ? DType::kU32 : DType::kU64;
    }
    return arith_.Binary(op, a, b).llvm;
  };
  switch (atom.kind) {
    case AtomKind::kGeZero: return arith_.Binary(BinaryOp::kGe, operand(atom.a), zero).llvm;
    case AtomKind::kEqZero: return arith_.Binary(BinaryOp::kEq, operand(atom.a), zero).llvm;
    case AtomKind::kFloorDiv: return binary(BinaryOp::kDiv);
    case AtomKind::kFloorMod: return binary(BinaryOp::kMod);
    case AtomKind::kMul: return binary(BinaryOp::kMul);
    case AtomKind::kMin: return binary(BinaryOp::kMin);
    case AtomKind::kMax: return binary(BinaryOp::kMax);
    case AtomKind::kAnd:
    case AtomKind::kOr: {
      Value a{MaterialiseBool(atom.a), DType::kBool, index_.DependsOnLane(atom.a) ? lanes : 1};
      Value b{MaterialiseBool(atom.b), DType::kBool, index_.DependsOnLane(atom.b) ? lanes : 1};
      return arith_.Binary(atom.kind == AtomKind::kAnd ? BinaryOp::kAnd : BinaryOp::kOr, a, b).llvm;
    }
    case AtomKind::kSelect: {
      const Value condition{MaterialiseBool(atom.a), DType::kBool,
                            index_.DependsOnLane(atom.a) ? lanes : 1};
      return arith_.Select(condition, operand(atom.b), operand(atom.c)).llvm;
    }
    default: break;
  }
  HONE_UNREACHABLE();
  return nullptr;
}

llvm::Value* FunctionEmitter::MaterialiseScalar(const Affine& a) {
  llvm::IRBuilder<>::InsertPointGuard restore(builder_);
  const int depth = index_.Depth(a);
  if (!a.IsConst() && depth != kDepthHere) {
    builder_.SetInsertPoint(frames_[static_cast<size_t>(depth)].marker);
  }
  llvm::Value* sum = nullptr;
  for (const Term& term : a.terms) {
    llvm::Value* value = AtomValue(term.atom);
    if (value->getType()->isIntegerTy(1)) value = builder_.CreateZExt(value, builder_.getInt64Ty());
    if (term.coefficient != 1)
      value = builder_.CreateMul(value, builder_.getInt64(static_cast<uint64_t>(term.coefficient)));
    sum = sum == nullptr ? value : builder_.CreateAdd(sum, value);
  }
  llvm::Value* constant = builder_.getInt64(static_cast<uint64_t>(a.constant));
  if (sum == nullptr) return constant;
  return a.constant == 0 ? sum : builder_.CreateAdd(sum, constant);
}

// The sum as a constant vector, when every lane is one.
llvm::Value* FunctionEmitter::LaneConstants(const Affine& a, unsigned bits) {
  llvm::SmallVector<llvm::Constant*, 64> lanes;
  llvm::Type* type = builder_.getIntNTy(bits);
  for (int k = 0; k < vector_.lanes; ++k) {
    const std::optional<Affine> at = index_.AtLane(a, std::min(k, vector_.active - 1));
    if (!at || !at->IsConst()) return nullptr;
    lanes.push_back(llvm::ConstantInt::getSigned(type, at->constant, /*ImplicitTrunc=*/true));
  }
  return llvm::ConstantVector::get(lanes);
}

llvm::Value* FunctionEmitter::MaterialiseVector(const Affine& a, unsigned bits) {
  llvm::IRBuilder<>::InsertPointGuard restore(builder_);
  const int depth = index_.Depth(a);
  if (depth != kDepthHere) builder_.SetInsertPoint(frames_[static_cast<size_t>(depth)].marker);
  llvm::Type* scalar_type = builder_.getIntNTy(bits);
  llvm::Type* type = llvm::FixedVectorType::get(scalar_type, static_cast<unsigned>(vector_.lanes));
  Affine uniform(a.constant);
  Affine varying;
  for (const Term& term : a.terms) {
    (index_.atom(term.atom).lane ? varying : uniform).terms.push_back(term);
  }
  llvm::Value* base = builder_.CreateSExtOrTrunc(MaterialiseScalar(uniform), scalar_type);
  llvm::Value* sum = builder_.CreateVectorSplat(static_cast<unsigned>(vector_.lanes), base);
  if (varying.IsConst()) return sum;
  if (llvm::Value* constants = LaneConstants(varying, bits))
    return builder_.CreateAdd(sum, constants);
  for (const Term& term : varying.terms) {
    llvm::Value* value = nullptr;
    if (index_.atom(term.atom).kind == AtomKind::kLane) {
      const Affine lane = Affine::Of(term.atom);
      value = LaneConstants(lane, bits);
    } else {
      value = AtomValue(term.atom);
      value = value->getType()->getScalarType()->isIntegerTy(1)
                  ? builder_.CreateZExt(value, type)
                  : builder_.CreateSExtOrTrunc(value, type);
    }
    sum = builder_.CreateAdd(
        sum, builder_.CreateMul(value, llvm::ConstantInt::getSigned(type, term.coefficient, true)));
  }
  return sum;
}

// A 0/1 sum as i1 (or a vector of it).
llvm::Value* FunctionEmitter::MaterialiseBool(const Affine& a) {
  if (a.IsConst()) return builder_.getInt1(a.constant != 0);
  if (a.terms.size() == 1) {
    const Term& term = a.terms[0];
    const bool same = term.coefficient == 1 && a.constant == 0;
    const bool negated = term.coefficient == -1 && a.constant == 1;
    const AtomKind kind = index_.atom(term.atom).kind;
    if ((same || negated) && kind != AtomKind::kLane) {
      llvm::Value* value = AtomValue(term.atom);
      if (!IsBoolKind(kind)) {
        value = builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
      }
      return negated ? builder_.CreateNot(value) : value;
    }
  }
  llvm::Value* value = index_.DependsOnLane(a) ? MaterialiseVector(a, 64) : MaterialiseScalar(a);
  return builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

Value FunctionEmitter::Materialise(const Affine& a, DType dtype) {
  const bool lane = index_.DependsOnLane(a);
  const int lanes = lane ? vector_.lanes : 1;
  if (ir::IsBool(dtype)) return {MaterialiseBool(a), dtype, lanes};
  const auto bits = static_cast<unsigned>(8 * ir::SizeOf(dtype));
  if (lane) return {MaterialiseVector(a, bits), dtype, lanes};
  return {builder_.CreateTrunc(MaterialiseScalar(a), builder_.getIntNTy(bits)), dtype, lanes};
}

llvm::Value* FunctionEmitter::Displaced(llvm::Value* pointer, int64_t bytes) {
  if (bytes == 0) return pointer;
  return builder_.CreateGEP(builder_.getInt8Ty(), pointer,
                            builder_.getInt64(static_cast<uint64_t>(bytes)));
}

// base + terms, each added in the header of its loop; terms are sorted by depth, so loops inside
// share the prefix.
llvm::Value* FunctionEmitter::HoistedPointer(int buffer, std::vector<Term> terms) {
  if (terms.empty()) return StateOf(buffer).base;
  const Term last = terms.back();
  const int depth = index_.atom(last.atom).depth;
  Affine key(buffer);
  key.terms = terms;
  const uint64_t hash = HashOf(key);
  if (depth != kDepthHere) {
    const Frame& frame = frames_[static_cast<size_t>(depth)];
    const auto [first, end] = frame.pointers.equal_range(hash);
    for (auto it = first; it != end; ++it) {
      if (it->second.buffer == buffer && it->second.terms == terms) return it->second.value;
    }
  }
  terms.pop_back();
  llvm::Value* prefix = HoistedPointer(buffer, terms);
  llvm::IRBuilder<>::InsertPointGuard restore(builder_);
  if (depth != kDepthHere) builder_.SetInsertPoint(frames_[static_cast<size_t>(depth)].marker);
  const Affine offset = Affine::Of(last.atom, last.coefficient * ir::SizeOf(Of(buffer).dtype));
  llvm::Value* pointer =
      builder_.CreateGEP(builder_.getInt8Ty(), prefix, MaterialiseScalar(offset));
  if (depth != kDepthHere) {
    terms.push_back(last);
    frames_[static_cast<size_t>(depth)].pointers.emplace(
        hash, Frame::Pointer{buffer, std::move(terms), pointer});
  }
  return pointer;
}

llvm::Value* FunctionEmitter::Pointer(int buffer, const Affine& index) {
  return Of(buffer).swizzle == ir::Swizzle::kNone ? PlainPointer(buffer, index)
                                                  : SwizzledPointer(buffer, index);
}

llvm::Value* FunctionEmitter::PlainPointer(int buffer, const Affine& index) {
  std::vector<Term> terms = index.terms;
  std::stable_sort(terms.begin(), terms.end(), [this](const Term& a, const Term& b) {
    return index_.atom(a.atom).depth < index_.atom(b.atom).depth;
  });
  llvm::Value* base = HoistedPointer(buffer, std::move(terms));
  return Displaced(base, index.constant * ir::SizeOf(Of(buffer).dtype));
}

// What is known of an element's address: an element at least, and the powers of two that its
// buffer's base and every part of the index are multiples of.
llvm::Align FunctionEmitter::AlignOf(int buffer, const Affine& index) const {
  const auto size = static_cast<uint64_t>(ir::SizeOf(Of(buffer).dtype));
  if (!function_->wants_alignment()) return llvm::Align(size);
  uint64_t multiples = static_cast<uint64_t>(index.constant);
  for (const Term& term : index.terms) multiples |= static_cast<uint64_t>(term.coefficient);
  multiples = multiples * size | static_cast<uint64_t>(Of(buffer).alignment);
  constexpr uint64_t kPiece = 16;  // a swizzle leaves these together
  if (Of(buffer).swizzle != ir::Swizzle::kNone) multiples |= kPiece;
  return llvm::Align(std::max(size, multiples & (~multiples + 1)));
}

LanePattern FunctionEmitter::PatternOf(const Affine& index) {
  LanePattern pattern;
  // Usual: the lane atom and nothing else that differs between lanes.
  const Term* lane = nullptr;
  bool simple = true;
  for (const Term& term : index.terms) {
    if (!index_.atom(term.atom).lane) continue;
    simple &= index_.atom(term.atom).kind == AtomKind::kLane;
    lane = &term;
  }
  if (simple && lane != nullptr) {
    pattern.base.constant = index.constant;
    for (const Term& term : index.terms) {
      if (&term != lane) pattern.base.terms.push_back(term);
    }
    for (int k = 0; k < vector_.active; ++k) pattern.offsets.push_back(k * lane->coefficient);
    pattern.contiguous = lane->coefficient == 1;
    return pattern;
  }
  const std::optional<Affine> first = index_.AtLane(index, 0);
  if (!first) return pattern;
  pattern.base = *first;
  pattern.contiguous = true;
  for (int k = 0; k < vector_.active; ++k) {
    const std::optional<Affine> at = index_.AtLane(index, k);
    if (!at || at->terms != first->terms) return {};
    pattern.offsets.push_back(at->constant - first->constant);
    pattern.contiguous &= pattern.offsets.back() == k;
  }
  return pattern;
}

}  // namespace hone::codegen
