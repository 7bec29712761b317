#include <algorithm>

#include "fmt/core.h"

#include "tests/mock_cuda/mock_map.h"
#include "tests/ptx/arith.h"
#include "tests/ptx/block.h"

// Barriers in shared memory (mbarrier) and copies of boxes of tensors (cp.async.bulk.tensor), which
// land at any time and say so to a barrier. What they bring is there for threads that have seen the
// end of the barrier's phase. After the PTX ISA, "Parallel Synchronization and Communication
// Instructions: mbarrier" and "Data Movement and Conversion Instructions: Tensor copy".
namespace hone::ptx {

namespace {

constexpr uint64_t kBarrierBytes = 8, kSwizzledRowBytes = 128;

}  // namespace

Block::Barrier* Block::BarrierAt(Thread& t, uint64_t address) {
  const auto found = barriers_.find(address);
  if (found == barriers_.end()) {
    Fail(t, fmt::format("there is no barrier at {:#x}", address));
    return nullptr;
  }
  // Whoever uses it must come after it was begun.
  const std::optional<Place> place = Find(t, Space::kShared, address);
  for (uint64_t k = 0; k < kBarrierBytes; ++k)
    TouchByte(t, &place->memory->shadow[place->offset + k], false);
  return &found->second;
}

void Block::UseBarrier(Thread& t, const Instruction& in) {
  const std::string& what = in.parts[0];
  if (what == "init") {
    const uint64_t address = AddressAt(t, in.operands[0]);
    uint64_t none = 0;
    if (address % kBarrierBytes != 0) return Fail(t, "a barrier is not aligned to 8");
    if (barriers_.contains(address)) return Fail(t, "there is a barrier already");
    Access(t, Space::kShared, address, kBarrierBytes, true, &none);
    const auto count = static_cast<int64_t>(Source(t, in.operands[1], {'u', 32}));
    if (count < 1) return Fail(t, "nobody arrives at it");
    barriers_[address] = {.count = count, .left = count, .thread = t.number};
    return;
  }
  // arrive.expect_tx: _, [barrier], bytes.
  const uint64_t address = AddressAt(t, in.operands[1]);
  Barrier* const barrier = error_.empty() ? BarrierAt(t, address) : nullptr;
  if (barrier == nullptr || !error_.empty()) return;
  if (in.operands.size() > 2)
    barrier->bytes += static_cast<int64_t>(Source(t, in.operands[2], {'u', 32}));
  if (--barrier->left < 0) return Fail(t, "more arrive than the barrier waits for");
  EndPhase(barrier);
}

// fence.proxy.async, or fence.mbarrier_init, which is for barriers that have just begun alone.
void Block::Fence(Thread& t, const Instruction& in) {
  if (in.parts[0] == "proxy") t.proxy_fences.push_back(epoch_);
  for (auto& [address, barrier] : barriers_) barrier.shown |= barrier.thread == t.number;
}

void Block::EndPhase(Barrier* barrier) {
  if (barrier->left > 0 || barrier->bytes != 0) return;
  ++barrier->phase;
  barrier->left = barrier->count;
}

/// Whether the phase of this parity has ended. A wait is over at once, by seed without success, or
/// the thread sleeps.
bool Block::TryWait(Thread& t, const Instruction& in) {
  const uint64_t address = AddressAt(t, in.operands[1]);
  const uint64_t parity = Source(t, in.operands[2], {'u', 32});
  Barrier* const barrier = error_.empty() ? BarrierAt(t, address) : nullptr;
  if (barrier == nullptr || !error_.empty()) return true;
  if (parity > 1) {
    Fail(t, "a parity is 0 or 1");
    return true;
  }
  const bool ended = static_cast<uint64_t>(barrier->phase % 2) != parity;
  if (!ended && t.state == Thread::State::kAtPhase) return false;
  if (!ended && random_.Below(2) != 0) {
    t.state = Thread::State::kAtPhase;
    return false;
  }
  if (ended) t.seen[address] = barrier->phase;
  SetRegister(t, in.operands[0], ended ? 1 : 0, {'p', 1});
  return true;
}

/// Lets threads go on whose phase has ended.
bool Block::WakeThreads() {
  bool woken = false;
  for (Thread& t : threads_) {
    if (t.state != Thread::State::kAtPhase || !TryWait(t, kernel_.body[t.next])) continue;
    t.state = Thread::State::kReady;
    ++t.next;
    woken = true;
  }
  return woken;
}

/// All threads have seen what one of them has: they met.
void Block::ShareWhatIsSeen() {
  std::map<uint64_t, int64_t> all;
  for (const Thread& t : threads_) {
    for (const auto& [barrier, phase] : t.seen) all[barrier] = std::max(all[barrier], phase);
  }
  for (Thread& t : threads_) t.seen = all;
}

/// Whether the thread knows that what a copy brought there has landed.
bool Block::HasSeen(const Thread& t, const Shadow& shadow) {
  if (shadow.barrier == 0) return true;
  const auto seen = t.seen.find(shadow.barrier);
  return seen != t.seen.end() && seen->second > shadow.phase;
}

// cp.async.bulk.tensor.2d [to], [map, {column, row}], [barrier].
void Block::BeginBulk(Thread& t, const Instruction& in) {
  Bulk bulk{.thread = static_cast<size_t>(t.number)};
  bulk.to = AddressAt(t, in.operands[0]);
  const uint64_t at = AddressAt(t, in.operands[1]);
  bulk.barrier = AddressAt(t, in.operands[2]);
  const std::vector<Operand>& coordinates = in.operands[1].parts[0].parts;
  for (const Operand& coordinate : coordinates)
    bulk.from.push_back(Extended(Source(t, coordinate, {'s', 32}), 32));
  if (!error_.empty()) return;
  // A map is a parameter of the kernel: its address counts from there.
  const uint64_t offset = at - parameters_.address;
  constexpr uint64_t kMapBytes = 128;
  if (at < parameters_.address || offset + kMapBytes > parameters_.bytes.size())
    return Fail(t, "its map is no parameter");
  const auto map = mock_cuda::MapIn(std::span(parameters_.bytes).subspan(offset, kMapBytes));
  if (!map) return Fail(t, "it has no map of a tensor");
  if (map->rank != coordinates.size()) return Fail(t, "the tensor has another rank");
  bulk.map = *map;
  const uint64_t row_bytes = map->box[0] * bulk.element();
  if (map->swizzle != 3 || row_bytes != kSwizzledRowBytes)
    return Fail(t, "only rows of 128 bytes with a swizzle as wide are known");
  if (bulk.to % kSwizzledRowBytes != 0) return Fail(t, "its place is not aligned to 128");
  Barrier* const barrier = BarrierAt(t, bulk.barrier);
  if (barrier == nullptr) return;
  if (!barrier->shown) return Fail(t, "its barrier is not shown by a fence");
  const std::optional<Place> place = Find(t, Space::kShared, bulk.to);
  if (!place || place->offset + bulk.bytes() > place->memory->bytes.size())
    return Fail(t, fmt::format("address {:#x} is outside of all memory", bulk.to));
  for (uint64_t k = 0; k < bulk.bytes(); ++k) {
    Shadow& shadow = place->memory->shadow[place->offset + k];
    if (shadow.pending) return Fail(t, "a copy that nobody waited for may write there");
    if (shadow.readers > 0) return Fail(t, "a wgmma that nobody waited for may read it");
    TouchByte(t, &shadow, true);
    shadow.pending = true;
  }
  if (error_.empty()) bulks_.push_back(std::move(bulk));
}

/// One of the copies that are on their way, by seed. False: there is none.
bool Block::LandBulk() {
  if (bulks_.empty()) return false;
  const size_t which = random_.Below(bulks_.size());
  const Bulk bulk = std::move(bulks_[which]);
  bulks_.erase(bulks_.begin() + static_cast<std::ptrdiff_t>(which));
  Thread& t = threads_[bulk.thread];
  Barrier& barrier = barriers_.at(bulk.barrier);
  const mock_cuda::TensorMap& map = bulk.map;
  for (uint64_t row = 0; row < bulk.bytes() / kSwizzledRowBytes; ++row) {
    for (uint64_t byte = 0; byte < kSwizzledRowBytes && error_.empty(); ++byte) {
      const int64_t x = bulk.from[0] + static_cast<int64_t>(byte / bulk.element());
      const int64_t y = bulk.from[1] + static_cast<int64_t>(row);
      const bool inside = x >= 0 && y >= 0 && static_cast<uint64_t>(x) < map.extents[0] &&
                          static_cast<uint64_t>(y) < map.extents[1];
      uint64_t value = 0;
      if (inside) {
        const uint64_t from = map.address + static_cast<uint64_t>(y) * map.strides[0] +
                              static_cast<uint64_t>(x) * bulk.element() + byte % bulk.element();
        Access(t, Space::kGlobal, from, 1, false, &value);
      }
      const uint64_t plain = bulk.to + row * kSwizzledRowBytes + byte;
      const std::optional<Place> place = Find(t, Space::kShared, plain ^ ((plain >> 7 & 7U) << 4));
      place->memory->bytes[place->offset] = static_cast<uint8_t>(value);
      Shadow& shadow = place->memory->shadow[place->offset];
      shadow.pending = false;
      shadow.set = true;
      shadow.unshown = -1;
      shadow.write = {};
      shadow.barrier = bulk.barrier;
      shadow.phase = barrier.phase;
    }
  }
  barrier.bytes -= static_cast<int64_t>(bulk.bytes());
  EndPhase(&barrier);
  return true;
}

}  // namespace hone::ptx
