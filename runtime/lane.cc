#include "runtime/lane.h"

namespace hone::runtime {
namespace {

constexpr int kNone = -1;
constexpr int kOver = -2;  // the job is over, or another thread has the slot

}  // namespace

uint64_t Lane::Open(const Work& work) {
  const uint64_t number = (ticket_.load(std::memory_order_relaxed) >> kNumberShift) + 1;
  part_.store(work.part, std::memory_order_relaxed);
  context_.store(work.context, std::memory_order_relaxed);
  fixed_.store(work.fixed, std::memory_order_relaxed);
  const uint64_t ticket = (number << kNumberShift) |
                          (static_cast<uint64_t>(work.parts) << kSlotsBits) |
                          static_cast<uint64_t>(work.slots - 1);
  // Sequentially consistent with a sleeper's side: either it sees the ticket or we see it asleep.
  ticket_.store(ticket, std::memory_order_seq_cst);
  return ticket;
}

Lane::Job Lane::JobOf(uint64_t ticket) const {
  return {.number = ticket >> kNumberShift,
          .slots = SlotsOf(ticket),
          .parts = PartsOf(ticket),
          .fixed = fixed_.load(std::memory_order_relaxed),
          .part = part_.load(std::memory_order_relaxed),
          .context = context_.load(std::memory_order_relaxed)};
}

// Takes the slot, and with it its next part: kNone when others have claimed all.
int Lane::Take(const Job& job, Slot& slot) {
  uint64_t word = slot.word.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t number = word >> kNumberShift;
    if (number > job.number || (number == job.number && (word & kTaken) != 0)) return kOver;
    const bool first = number < job.number;
    const int part = first ? 0 : static_cast<int>((word >> kNextShift) & kPartMask);
    uint64_t wanted = (first ? job.number << kNumberShift : word) | kTaken;
    if (part < job.parts) wanted += kOnePart;
    if (slot.word.compare_exchange_weak(word, wanted, std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
      return part < job.parts ? part : kNone;
    }
  }
}

int Lane::Claim(const Job& job, Slot& slot) {
  uint64_t word = slot.word.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t number = word >> kNumberShift;
    if (number > job.number) return kNone;
    const bool first = number < job.number;
    const int part = first ? 0 : static_cast<int>((word >> kNextShift) & kPartMask);
    if (part >= job.parts) return kNone;
    const uint64_t wanted = (first ? job.number << kNumberShift : word) + kOnePart;
    if (slot.word.compare_exchange_weak(word, wanted, std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
      return part;
    }
  }
}

void Lane::Do(const Job& job, int victim, int part, int slot) {
  std::atomic<bool>& busy = slots_[static_cast<size_t>(slot)].busy;
  busy.store(true, std::memory_order_relaxed);
  Reach(LaneObserver::Point::kAfterClaim, slot);
  job.part(job.context, victim * job.parts + part, slot);
  Reach(LaneObserver::Point::kAfterPart, slot);
  busy.store(false, std::memory_order_relaxed);
  // The job goes on until this: its number is still in the word. Sequentially consistent with the
  // owner's side: either it sees the part done or the thread that did it sees the owner asleep.
  slots_[static_cast<size_t>(victim)].word.fetch_add(1, std::memory_order_seq_cst);
}

int Lane::WorkOn(uint64_t ticket, int slot) {
  const Job job = JobOf(ticket);
  if (slot >= job.slots) return 0;
  int done = 0;
  if (slot == 0 && job.parts == 1) {
    job.part(job.context, 0, 0);
    done = 1;
  } else {
    Slot& own = slots_[static_cast<size_t>(slot)];
    Reach(LaneObserver::Point::kBeforeClaim, slot);
    int part = Take(job, own);
    if (part == kOver) return 0;
    for (; part >= 0; part = Claim(job, own)) {
      Do(job, slot, part, slot);
      ++done;
      Reach(LaneObserver::Point::kBeforeClaim, slot);
    }
  }
  return job.fixed ? done : done + Help(job, slot);
}

int Lane::Help(const Job& job, int slot) {
  int done = 0;
  int part = 0;
  for (int i = 1; i < job.slots; ++i) {
    const int victim = slot + i < job.slots ? slot + i : slot + i - job.slots;
    if (victim == 0 && job.parts == 1) continue;
    Slot& other = slots_[static_cast<size_t>(victim)];
    while ((part = Claim(job, other)) >= 0) {
      Do(job, victim, part, slot);
      ++done;
      Reach(LaneObserver::Point::kBeforeClaim, slot);
    }
  }
  return done;
}

int Lane::FirstUndone(uint64_t ticket) const {
  const uint64_t number = ticket >> kNumberShift;
  const auto slots = static_cast<size_t>(SlotsOf(ticket));
  const auto parts = static_cast<uint64_t>(PartsOf(ticket));
  for (size_t slot = parts == 1 ? 1 : 0; slot < slots; ++slot) {
    const uint64_t word = slots_[slot].word.load(std::memory_order_seq_cst);
    if (word >> kNumberShift != number || (word & kPartMask) != parts) {
      return static_cast<int>(slot);
    }
  }
  return -1;
}

int Lane::FirstBusy(uint64_t ticket) const {
  for (int slot = 1; slot < SlotsOf(ticket); ++slot) {
    if (slots_[static_cast<size_t>(slot)].busy.load(std::memory_order_relaxed)) return slot;
  }
  return -1;
}

}  // namespace hone::runtime
