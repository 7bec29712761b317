#include <algorithm>
#include <array>

#include "codegen/llvm_emitter.h"

// Loads at a stride in an unrolled loop that walks along what is contiguous: the lanes of all its
// iterations are one block, loaded in rows and turned in registers.
namespace hone::codegen {

using ir::DType;

namespace {

constexpr int kQuarter = 4;  ///< elements of 128 bits

/// Rows of 8 or 16 elements → columns, by shuffles that are one instruction each.
class Turner {
 public:
  Turner(llvm::IRBuilder<>* builder, int lanes) : b_(*builder), lanes_(lanes) {}

  std::vector<llvm::Value*> Columns(std::vector<llvm::Value*> rows) {
    // Pairs of elements, then fours: u[4g + c] holds rows 4g to 4g+3 of column 4q + c in its
    // quarter q.
    std::vector<llvm::Value*> pairs, fours;
    for (size_t k = 0; k < rows.size(); k += 2) {
      pairs.push_back(Interleaved(rows[k], rows[k + 1], {0, 0, 1, 1}));
      pairs.push_back(Interleaved(rows[k], rows[k + 1], {2, 2, 3, 3}));
    }
    for (size_t k = 0; k < rows.size(); k += 4) {
      for (const size_t half : {k, k + 1}) {
        fours.push_back(Quarters(pairs[half], pairs[half + 2], {0, 1}));
        fours.push_back(Quarters(pairs[half], pairs[half + 2], {2, 3}));
      }
    }
    std::vector<llvm::Value*> columns(rows.size());
    for (size_t c = 0; c < kQuarter; ++c) {
      if (lanes_ == 8) {
        columns[c] = Whole(fours[c], fours[4 + c], {0, 2});
        columns[4 + c] = Whole(fours[c], fours[4 + c], {1, 3});
        continue;
      }
      const std::vector<int> even = {0, 2, 4, 6}, odd = {1, 3, 5, 7};
      llvm::Value* upper[] = {Whole(fours[c], fours[4 + c], even),
                              Whole(fours[c], fours[4 + c], odd)};
      llvm::Value* lower[] = {Whole(fours[8 + c], fours[12 + c], even),
                              Whole(fours[8 + c], fours[12 + c], odd)};
      for (const size_t q : {size_t{0}, size_t{1}}) {
        columns[4 * q + c] = Whole(upper[q], lower[q], even);
        columns[4 * (q + 2) + c] = Whole(upper[q], lower[q], odd);
      }
    }
    return columns;
  }

 private:
  /// In every quarter: elements of a and b in turns.
  llvm::Value* Interleaved(llvm::Value* a, llvm::Value* b, const std::array<int, 4>& from) {
    llvm::SmallVector<int, 16> mask;
    for (int k = 0; k < lanes_; ++k) {
      const int place = k % kQuarter;
      mask.push_back(k - place + from[static_cast<size_t>(place)] + (place % 2) * lanes_);
    }
    return b_.CreateShuffleVector(a, b, mask);
  }
  /// In every quarter: two elements of a, then the same of b.
  llvm::Value* Quarters(llvm::Value* a, llvm::Value* b, const std::array<int, 2>& from) {
    llvm::SmallVector<int, 16> mask;
    for (int k = 0; k < lanes_; ++k) {
      const int place = k % kQuarter;
      mask.push_back(k - place + from[static_cast<size_t>(place % 2)] + (place / 2) * lanes_);
    }
    return b_.CreateShuffleVector(a, b, mask);
  }
  /// Whole quarters, of a and then b.
  llvm::Value* Whole(llvm::Value* a, llvm::Value* b, const std::vector<int>& quarters) {
    llvm::SmallVector<int, 16> mask;
    for (const int q : quarters) {
      for (int k = 0; k < kQuarter; ++k) mask.push_back(q * kQuarter + k);
    }
    return b_.CreateShuffleVector(a, b, mask);
  }

  llvm::IRBuilder<>& b_;
  int lanes_;
};

}  // namespace

// How many iterations of an unrolled loop, from the current one on, read one element further each.
int64_t FunctionEmitter::ColumnsOf(const ir::Expr& load, const Affine& index) {
  for (size_t k = unrolled_.size(); k-- > 0;) {
    const UnrolledLoop& loop = unrolled_[k];
    if (loop.now + 1 >= loop.extent || loop.branches != branches_) continue;
    index_.Bind(loop.var, Affine(loop.now + 1));
    const Affine moved = index_.Decompose(load->args[0]) - index;
    index_.Bind(loop.var, Affine(loop.now));
    if (moved == Affine(1)) return std::min<int64_t>(loop.extent - loop.now, vector_.lanes);
  }
  return 0;
}

std::vector<Value> FunctionEmitter::LoadStrip(int buffer, const Affine& first, int64_t stride,
                                              int64_t columns) {
  const DType dtype = Of(buffer).dtype;
  const int lanes = vector_.lanes;
  llvm::Type* type = arith_.MemoryType(dtype, lanes);
  const llvm::Align align(static_cast<uint64_t>(ir::SizeOf(dtype)));
  llvm::SmallVector<llvm::Constant*, 16> wanted;
  for (int k = 0; k < lanes; ++k) wanted.push_back(builder_.getInt1(k < columns));
  std::vector<llvm::Value*> rows;
  for (int k = 0; k < lanes; ++k) {
    if (k >= vector_.active) {
      rows.push_back(llvm::PoisonValue::get(type));
      continue;
    }
    llvm::Value* pointer = Pointer(buffer, first + Affine(k * stride));
    rows.push_back(columns == lanes
                       ? static_cast<llvm::Value*>(builder_.CreateAlignedLoad(type, pointer, align))
                       : builder_.CreateMaskedLoad(type, pointer, align,
                                                   llvm::ConstantVector::get(wanted),
                                                   llvm::Constant::getNullValue(type)));
  }
  std::vector<llvm::Value*> turned = Turner(&builder_, lanes).Columns(std::move(rows));
  std::vector<Value> out;
  for (int64_t k = 0; k < columns; ++k)
    out.push_back(arith_.FromMemory(turned[static_cast<size_t>(k)], dtype, lanes));
  return out;
}

bool FunctionEmitter::LoadTransposed(const ir::Expr& load, const Affine& index, Value* result) {
  const int buffer = load->id;
  const ir::Buffer& from = Of(buffer);
  const bool memory = from.scope == ir::Scope::kArgument || from.scope == ir::Scope::kScratch;
  const bool turnable = memory && (from.dtype == DType::kF32 || from.dtype == DType::kI32);
  if (unrolled_.empty() || !turnable || mask_ != nullptr || guard_ != nullptr) return false;
  if ((vector_.lanes != 8 && vector_.lanes != 16) || 2 * vector_.active < vector_.lanes ||
      !index_.DependsOnLane(index))
    return false;
  const LanePattern pattern = PatternOf(index);
  if (pattern.offsets.size() < 2) return false;
  const int64_t stride = pattern.offsets[1];
  for (size_t k = 0; k < pattern.offsets.size(); ++k) {
    if (pattern.offsets[k] != static_cast<int64_t>(k) * stride) return false;
  }
  if (stride < vector_.lanes) return false;
  for (const Strip& s : strips_) {
    const int64_t column = pattern.base.constant - s.first.constant;
    if (s.buffer == buffer && s.stride == stride && s.first.terms == pattern.base.terms &&
        s.generation == generation_ && s.writes == StateOf(buffer).writes && column >= 0 &&
        column < static_cast<int64_t>(s.columns.size()) && s.active == vector_.active) {
      *result = s.columns[static_cast<size_t>(column)];
      return true;
    }
  }
  const int64_t columns = ColumnsOf(load, index);
  if (2 * columns < vector_.lanes) return false;
  const int64_t span = (vector_.active - 1) * stride + columns;
  if (!InBounds(buffer, index_.Bounds(pattern.base), span)) return false;
  strips_.push_back({buffer, pattern.base, stride, generation_, StateOf(buffer).writes,
                     vector_.active, LoadStrip(buffer, pattern.base, stride, columns)});
  *result = strips_.back().columns[0];
  return true;
}

}  // namespace hone::codegen
