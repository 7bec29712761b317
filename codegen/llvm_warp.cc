#include <algorithm>

#include "fmt/core.h"

#include "codegen/llvm_emitter.h"
#include "ir/mma.h"

// What the lanes of a warp do together: combine numbers (ir/lanes.h), or multiply matrices
// (ir/mma.h), for which each lane fetches its parts of both factors from shared memory by the
// machine's instruction, to which it gives the address of a row.
namespace hone::codegen {

using ir::Expr;
using ir::FloorDiv;
using ir::FloorMod;

namespace {

/// Matrices of 8 by 8 that a lane addresses a row of: the row in its matrix, the number of the
/// matrix by twos.
Expr RowOf(const Expr& lane) { return FloorMod(lane, 8); }
Expr LowBit(const Expr& lane) { return FloorMod(FloorDiv(lane, 8), 2); }
Expr HighBit(const Expr& lane) { return FloorDiv(lane, 16); }

}  // namespace

// A butterfly: after each turn a lane has what twice as many lanes had before.
void FunctionEmitter::EmitLanes(const ir::StmtNode& node) {
  const int buffer = node.buffers[0];
  if (mask_ != nullptr || vector_.lanes > 1) {
    Fail("lanes meet inside a vector loop");
    return;
  }
  // Else a group would not be threads that follow each other in one warp.
  if (launch_.block_x != node.extent) {
    Fail(fmt::format("{} lanes meet where {} threads are side by side", node.extent,
                     launch_.block_x));
    return;
  }
  statement_values_.clear();
  const Affine index = index_.Decompose(node.index);
  for (int64_t apart = node.extent / 2; apart > 0 && status_.ok(); apart /= 2) {
    const Value own = Load(buffer, index);
    const Value other{function_->OtherLane(own.llvm, apart, node.extent), own.dtype, 1};
    if (other.llvm == nullptr) {
      Fail("lanes meet, which this machine does not have");
      return;
    }
    Store(buffer, index, arith_.Combine(node.combiner, {own}, {other})[0]);
  }
}

Affine FunctionEmitter::Placed(const Expr& load, const std::vector<std::pair<int, Expr>>& values) {
  std::vector<Affine> given, before;
  for (const auto& [var, value] : values) {
    given.push_back(index_.Decompose(value));
    // Those of the mma's loops have none outside.
    before.push_back(var == thread_x_ ? index_.Decompose(ir::Var(var)) : Affine(0));
  }
  for (size_t k = 0; k < values.size(); ++k) index_.Bind(values[k].first, given[k]);
  const Affine index = index_.Decompose(load->args[0]);
  for (size_t k = 0; k < values.size(); ++k) index_.Bind(values[k].first, before[k]);
  return index;
}

const std::vector<llvm::Value*>& FunctionEmitter::Fetched(
    int buffer, const Affine& row, int count,
    const std::function<std::vector<llvm::Value*>()>& fetch) {
  const int64_t writes = StateOf(buffer).writes;
  std::erase_if(fetched_, [&](const FetchedMatrices& f) { return f.generation != generation_; });
  const auto known = std::ranges::find_if(fetched_, [&](const FetchedMatrices& f) {
    return f.buffer == buffer && f.count == count && f.row == row && f.writes == writes;
  });
  if (known != fetched_.end()) return known->words;
  fetched_.push_back({buffer, count, row, generation_, writes, fetch()});
  return fetched_.back().words;
}

const std::vector<llvm::Value*>& FunctionEmitter::Matrices(int buffer, const Affine& row, int count,
                                                           bool turned) {
  return Fetched(buffer, row, count,
                 [&] { return function_->FetchMatrices(Pointer(buffer, row), count, turned); });
}

const std::vector<llvm::Value*>& FunctionEmitter::LaneBytes(const ir::MmaLoop& mma, bool of_first,
                                                            int64_t term) {
  constexpr int kWordBytes = 4;
  const Expr& load = of_first ? mma.first : mma.second;
  const Expr lane = ir::Var(thread_x_);
  const int64_t terms = mma.step();
  const auto at = [&](int element) {
    const ir::MmaPlace place =
        of_first ? ir::FirstPlace(0, element, terms) : ir::SecondPlace(0, element, terms);
    const Expr own = FloorMod(lane, 4) * kWordBytes + (place.term + term);
    if (of_first) return Placed(load, {{mma.row, ir::Int(place.row / 8)}, {mma.term, own}});
    const Expr column = FloorDiv(lane, 4);
    return Placed(
        load,
        {{thread_x_, FloorDiv(column, 2)}, {mma.column, FloorMod(column, 2)}, {mma.term, own}});
  };
  const int count = of_first ? 4 : 2;
  return Fetched(load->id, at(0), count, [&] {
    std::vector<llvm::Value*> words;
    for (int word = 0; word < count; ++word) {
      llvm::Value* all = builder_.getInt32(0);
      for (int byte = 0; byte < kWordBytes; ++byte) {
        llvm::Value* const own =
            builder_.CreateZExt(Load(load->id, at(kWordBytes * word + byte)).llvm, all->getType());
        all = builder_.CreateOr(all, builder_.CreateShl(own, static_cast<uint64_t>(8 * byte)));
      }
      words.push_back(all);
    }
    return words;
  });
}

void FunctionEmitter::EmitMma(const ir::StmtNode& node) {
  const std::optional<ir::MmaLoop> mma = ir::FindMma(node);
  if (!mma) return Fail("an mma of another form");
  if (!function_->has_mma()) return Fail("an mma, but this machine has no tensor cores");
  if (mask_ != nullptr || vector_.lanes > 1) return Fail("an mma inside a vector loop");
  if (launch_.block_x != ir::kMmaLanes || thread_x_ < 0) {
    return Fail(fmt::format("an mma where {} threads are side by side, not {}", launch_.block_x,
                            ir::kMmaLanes));
  }
  for (const Expr& load : {mma->first, mma->second}) {
    if (Of(load->id).scope != ir::Scope::kShared)
      return Fail("an mma of buffer '" + Of(load->id).name + "', which is not in shared memory");
  }
  statement_values_.clear();
  RunMma(*mma);
}

// The four matrices of the first factor are its upper and lower rows of the first half of the
// terms, then of the others; those of the second factor are half of the terms each. A row of one is
// 16 bytes, eight numbers or twice as many bytes. Where rows lie side by side and terms do not, a
// fetched row is one of terms and the machine turns it, which it can do with numbers of 16 bits
// alone; each lane loads bytes for itself.
void FunctionEmitter::RunMma(const ir::MmaLoop& mma) {
  const Expr lane = ir::Var(thread_x_);
  const int64_t step = mma.step(), half_step = step / 2;
  const auto turned = [&](const Expr& load) {
    const auto at = [&](int64_t term) {
      return Placed(load, {{thread_x_, ir::Int(0)},
                           {mma.row, ir::Int(0)},
                           {mma.column, ir::Int(0)},
                           {mma.term, ir::Int(term)}});
    };
    return !((at(1) - at(0)) == Affine(1));
  };
  const bool first_turned = turned(mma.first), second_turned = turned(mma.second);
  const bool bytes = mma.sum_dtype() == ir::DType::kI32;
  std::vector<llvm::Value*> sums;
  std::vector<Affine> places;
  for (int64_t e = 0; e < 4; ++e) {
    index_.Bind(mma.row, Affine(e / 2));
    index_.Bind(mma.column, Affine(e % 2));
    index_.Bind(mma.term, Affine(0));
    places.push_back(index_.Decompose(mma.store->index));
    sums.push_back(Load(mma.store->buffers[0], places.back()).llvm);
  }
  const auto first_row = [&](int64_t term) {
    const Expr row = first_turned ? ir::Int(0) : RowOf(lane);
    const Expr terms = first_turned ? RowOf(lane) + HighBit(lane) * 8 : HighBit(lane) * half_step;
    return Placed(mma.first,
                  {{thread_x_, row * 4}, {mma.row, LowBit(lane)}, {mma.term, terms + term}});
  };
  const auto second_row = [&](int64_t term, bool four) {
    const Expr column = second_turned ? ir::Int(0) : RowOf(lane);
    const Expr halves = four ? FloorDiv(lane, 8) : LowBit(lane);
    const Expr terms = second_turned ? RowOf(lane) + halves * 8 : halves * half_step;
    return Placed(mma.second, {{thread_x_, FloorDiv(column, 2)},
                               {mma.column, FloorMod(column, 2)},
                               {mma.term, terms + term}});
  };
  const auto second_words = [&](int64_t term) {
    if (bytes && second_turned) return LaneBytes(mma, /*of_first=*/false, term);
    // Those of twice as many terms together, where there are as many.
    const int64_t begin = term / (2 * step) * (2 * step);
    const bool four = begin + 2 * step <= mma.terms;
    std::vector<llvm::Value*> words = Matrices(
        mma.second->id, second_row(four ? begin : term, four), four ? 4 : 2, second_turned);
    if (!four) return words;
    const auto half = words.begin() + (term == begin ? 0 : 2);
    return std::vector<llvm::Value*>(half, half + 2);
  };
  for (int64_t term = 0; term < mma.terms; term += step) {
    const std::vector<llvm::Value*> first =
        bytes && first_turned ? LaneBytes(mma, /*of_first=*/true, term)
                              : Matrices(mma.first->id, first_row(term), 4, first_turned);
    sums = function_->MultiplyMatrices(mma.first->dtype, mma.second->dtype, first,
                                       second_words(term), sums);
  }
  for (size_t e = 0; e < sums.size(); ++e)
    Store(mma.store->buffers[0], places[e], {sums[e], mma.sum_dtype(), 1});
}

}  // namespace hone::codegen
