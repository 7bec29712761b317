#include "codegen/llvm_runs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "llvm/Analysis/VectorUtils.h"

namespace hone::codegen {

namespace {

/// Bytes that a dot product takes from one factor at a time, and half of them, that are widened on
/// the way.
constexpr int64_t kWordBytes[] = {4, 2};

/// Which lanes are on; nothing where that is not known.
std::optional<std::vector<bool>> ActiveOf(llvm::Value* mask, int lanes) {
  std::vector<bool> active(static_cast<size_t>(lanes), true);
  if (mask == nullptr) return active;
  const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  for (int k = 0; k < lanes; ++k) {
    const llvm::Constant* lane = nullptr;
    if (constant != nullptr) lane = constant->getAggregateElement(static_cast<unsigned>(k));
    if (lane == nullptr || (!lane->isOneValue() && !lane->isZeroValue())) return std::nullopt;
    active[static_cast<size_t>(k)] = lane->isOneValue();
  }
  return active;
}

/// Whether each `group` lanes step by `inner`, and lane by lane of the groups by `outer` (0: by
/// anything).
bool StepsBy(const std::vector<int64_t>& offsets, int64_t group, int64_t inner, int64_t outer) {
  for (size_t k = 0; k < offsets.size(); ++k) {
    const auto place = static_cast<int64_t>(k) % group;
    const int64_t first = offsets[k - static_cast<size_t>(place)];
    if (offsets[k] != first + place * inner) return false;
    if (outer != 0 && first != static_cast<int64_t>(k) / group * outer) return false;
  }
  return true;
}

/// What the loads have in common.
struct Runs {
  llvm::IRBuilder<>& builder;
  llvm::Type* scalar;        ///< of one lane
  std::vector<bool> active;  ///< by lane
  int64_t group;             ///< lanes of a word
  const std::function<llvm::Value*(size_t lane)>& pointer;
};

/// Words at any distance: each is loaded as a whole. Null: some word is wanted in part.
llvm::Value* LoadWords(const Runs& runs) {
  const size_t words = runs.active.size() / static_cast<size_t>(runs.group);
  const auto bits = static_cast<unsigned>(runs.group) * runs.scalar->getScalarSizeInBits();
  llvm::Type* type = runs.builder.getIntNTy(bits);
  llvm::Value* all =
      llvm::Constant::getNullValue(llvm::FixedVectorType::get(type, static_cast<unsigned>(words)));
  for (size_t k = 0; k < words; ++k) {
    const size_t lane = k * static_cast<size_t>(runs.group);
    const auto first = runs.active.begin() + static_cast<ptrdiff_t>(lane);
    if (!std::equal(first + 1, first + runs.group, first)) return nullptr;
    if (!runs.active[lane]) continue;
    llvm::Value* word = runs.builder.CreateAlignedLoad(type, runs.pointer(lane), llvm::Align(1));
    all = runs.builder.CreateInsertElement(all, word, k);
  }
  return all;
}

/// Each lane of a word is of a stream of its own: neighbours are interleaved, then what that gave.
llvm::Value* LoadStreams(const Runs& runs) {
  llvm::IRBuilder<>& builder = runs.builder;
  const auto group = static_cast<size_t>(runs.group);
  const auto length = static_cast<unsigned>(runs.active.size() / group);
  llvm::Type* type = llvm::FixedVectorType::get(runs.scalar, length);
  unsigned bits = runs.scalar->getScalarSizeInBits();
  const llvm::Align align(bits / 8);
  std::vector<llvm::Value*> streams;
  for (size_t s = 0; s < group; ++s) {
    llvm::SmallVector<llvm::Constant*, 32> lanes;
    bool all = true;
    for (size_t k = s; k < runs.active.size(); k += group) {
      lanes.push_back(builder.getInt1(runs.active[k]));
      all = all && runs.active[k];
    }
    llvm::Value* none = llvm::Constant::getNullValue(type);
    llvm::Value* mask = llvm::ConstantVector::get(lanes);
    streams.push_back(
        all ? static_cast<llvm::Value*>(builder.CreateAlignedLoad(type, runs.pointer(s), align))
            : builder.CreateMaskedLoad(type, runs.pointer(s), align, mask, none));
  }
  for (; streams.size() > 1; bits *= 2) {
    std::vector<llvm::Value*> wider;
    for (size_t s = 0; s < streams.size(); s += 2) {
      llvm::Value* pairs = builder.CreateShuffleVector(streams[s], streams[s + 1],
                                                       llvm::createInterleaveMask(length, 2));
      wider.push_back(builder.CreateBitCast(
          pairs, llvm::FixedVectorType::get(builder.getIntNTy(2 * bits), length)));
    }
    streams = std::move(wider);
  }
  return streams[0];
}

}  // namespace

llvm::Value* LoadRuns(llvm::IRBuilder<>& builder, llvm::Type* scalar,
                      const std::vector<int64_t>& offsets, llvm::Value* mask,
                      const std::function<llvm::Value*(size_t lane)>& pointer) {
  const auto count = static_cast<int64_t>(offsets.size());
  const std::optional<std::vector<bool>> active = ActiveOf(mask, static_cast<int>(count));
  if (!active) return nullptr;
  for (const int64_t bytes : kWordBytes) {
    const int64_t group = 8 * bytes / scalar->getScalarSizeInBits();
    if (group < 2 || count < 4 * group) continue;
    const Runs runs = {builder, scalar, *active, group, pointer};
    const int64_t stream = offsets[1];
    llvm::Value* raw = nullptr;
    if (StepsBy(offsets, group, 1, 0) && offsets[static_cast<size_t>(group)] != group)
      raw = LoadWords(runs);
    else if (stream >= count / group && StepsBy(offsets, group, stream, 1))
      raw = LoadStreams(runs);
    if (raw != nullptr) return raw;
  }
  return nullptr;
}

}  // namespace hone::codegen
