#include <algorithm>

#include "fmt/core.h"

#include "tests/ptx/block.h"

// Asynchronous copies (cp.async). One lands when it is issued or when its thread waits for it, by
// seed. In between nobody may touch where it writes: whether it has landed is not known there.
namespace hone::ptx {

void Block::CopyAsync(Thread& t, const Instruction& in) {
  if (in.Has(kCommitGroup) || in.Has(kWaitAll)) {
    for (Thread::Copy& copy : t.copies) {
      if (copy.group < 0) copy.group = t.groups;
    }
    ++t.groups;
    if (in.Has(kWaitAll)) AwaitCopies(t, t.groups);
  } else if (in.Has(kWaitGroup)) {
    AwaitCopies(t, t.groups - static_cast<int64_t>(in.operands[0].bits));
  } else {
    StartCopy(t, in);
  }
}

void Block::StartCopy(Thread& t, const Instruction& in) {
  Thread::Copy copy;
  copy.to = AddressAt(t, in.operands[0]);
  copy.from = AddressAt(t, in.operands[1]);
  copy.bytes = copy.read = static_cast<int>(in.operands[2].bits);
  if (in.operands.size() > 3) copy.read = static_cast<int>(Source(t, in.operands[3], {'u', 32}));
  const auto bytes = static_cast<uint64_t>(copy.bytes);
  if (copy.read > copy.bytes) return Fail(t, "it reads more than it writes");
  if (copy.to % bytes != 0 || copy.from % bytes != 0)
    return Fail(t, fmt::format("an address is not aligned to {}", bytes));
  const std::optional<Place> place = Find(t, Space::kShared, copy.to);
  if (!place || place->offset + bytes > place->memory->bytes.size())
    return Fail(t, fmt::format("address {:#x} is outside of all memory", copy.to));
  for (uint64_t k = 0; k < bytes; ++k) {
    Shadow& shadow = place->memory->shadow[place->offset + k];
    if (shadow.pending) return Fail(t, "a copy that nobody waited for may write there");
    if (shadow.readers > 0) return Fail(t, "a wgmma that nobody waited for may read it");
    TouchByte(t, &shadow, true);
    shadow.pending = true;
  }
  if (random_.Below(2) == 0) Land(t, &copy);
  t.copies.push_back(copy);
}

void Block::Land(Thread& t, Thread::Copy* copy) {
  const std::optional<Place> place = Find(t, Space::kShared, copy->to);
  for (int k = 0; k < copy->bytes && error_.empty(); ++k) {
    uint64_t value = 0;
    if (k < copy->read)
      Access(t, Space::kGlobal, copy->from + static_cast<uint64_t>(k), 1, false, &value);
    place->memory->bytes[place->offset + static_cast<size_t>(k)] = static_cast<uint8_t>(value);
  }
  copy->landed = true;
}

void Block::AwaitCopies(Thread& t, int64_t groups) {
  for (Thread::Copy& copy : t.copies) {
    if (copy.group < 0 || copy.group >= groups) continue;
    if (!copy.landed) Land(t, &copy);
    const std::optional<Place> place = Find(t, Space::kShared, copy.to);
    for (int k = 0; k < copy.bytes; ++k) {
      Shadow& shadow = place->memory->shadow[place->offset + static_cast<size_t>(k)];
      shadow.pending = false;
      shadow.set = true;
      shadow.unshown = static_cast<int32_t>(t.proxy_fences.size());
      shadow.barrier = 0;
      // Others see it after the next barrier.
      TouchByte(t, &shadow, true);
    }
  }
  std::erase_if(t.copies, [&](const Thread::Copy& c) { return c.group >= 0 && c.group < groups; });
}

}  // namespace hone::ptx
