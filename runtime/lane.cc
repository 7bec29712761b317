#include "runtime/lane.h"

#include <algorithm>

namespace hone::runtime {
namespace {

constexpr int kNone = -1;
constexpr int kOver = -2;  // the job is over, or another thread has the slot

}  // namespace

Lane::Lane(int slots, LaneObserver* observer, uint64_t jobs)
    : slots_(static_cast<size_t>(slots)), observer_(observer) {
  for (int words = slots; words > kFan; words = Above(words))
    sums_.emplace_back(static_cast<size_t>(Above(words)));
  ticket_.store(jobs << kNumberShift, std::memory_order_relaxed);
  RenewWords(jobs);
}

// Between jobs: who holds a ticket of one that is over finds no part to claim, before and after.
void Lane::RenewWords(uint64_t number) {
  const uint64_t over = (number << kNumberShift) | (uint64_t{kMaxParts} << kNextShift) | kMaxParts;
  for (Slot& slot : slots_) slot.word.store(over, std::memory_order_relaxed);
}

uint64_t Lane::Open(const Work& work) {
  const uint64_t last = ticket_.load(std::memory_order_relaxed) >> kNumberShift;
  const uint64_t number = (last + 1) & kNumberMask;
  if (number % kRenewEach == 0) [[unlikely]]
    RenewWords(last);
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
    if (IsLater(number, job.number) || (number == job.number && (word & kTaken) != 0)) return kOver;
    const bool first = number != job.number;
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
    if (IsLater(number, job.number)) return kNone;
    const bool first = number != job.number;
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
  const uint64_t before =
      slots_[static_cast<size_t>(victim)].word.fetch_add(1, std::memory_order_seq_cst);
  const bool all = static_cast<int>(before & kPartMask) + 1 == job.parts;
  if (all && job.slots > kFan) CountUp(job, victim);
}

// All parts of the slot are done. The job is not over before this has reached the level that the
// owner looks at.
void Lane::CountUp(const Job& job, int slot) {
  int index = slot;
  int words = job.slots;
  // The owner's only part is not counted: nobody else waits for it.
  const int uncounted = job.parts == 1 ? 1 : 0;
  for (size_t level = 0; words > kFan; ++level, words = Above(words)) {
    const int first = index / kFan * kFan;
    const int below = std::min(words - first, kFan) - (first == 0 && level == 0 ? uncounted : 0);
    index /= kFan;
    std::atomic<uint64_t>& sum = sums_[level][static_cast<size_t>(index)].word;
    uint64_t word = sum.load(std::memory_order_relaxed);
    uint64_t next = 0;
    do {
      next = (word >> kSumShift == job.number ? word : job.number << kSumShift) + 1;
    } while (!sum.compare_exchange_weak(word, next, std::memory_order_seq_cst,
                                        std::memory_order_relaxed));
    if (static_cast<int>(next & kSumMask) < below) return;
  }
}

int Lane::WorkOn(uint64_t ticket, int slot, Breather* breather) {
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
      if (breather != nullptr) breather->Breathe();
      Reach(LaneObserver::Point::kBeforeClaim, slot);
    }
  }
  return job.fixed ? done : done + Help(job, slot, breather);
}

int Lane::Help(const Job& job, int slot, Breather* breather) {
  int done = 0;
  int part = 0;
  for (int i = 1; i < job.slots; ++i) {
    const int victim = slot + i < job.slots ? slot + i : slot + i - job.slots;
    if (victim == 0 && job.parts == 1) continue;
    Slot& other = slots_[static_cast<size_t>(victim)];
    while ((part = Claim(job, other)) >= 0) {
      Do(job, victim, part, slot);
      ++done;
      if (breather != nullptr) breather->Breathe();
      Reach(LaneObserver::Point::kBeforeClaim, slot);
    }
  }
  return done;
}

int Lane::FirstUndone(uint64_t ticket) const {
  const uint64_t number = ticket >> kNumberShift;
  const auto slots = static_cast<size_t>(SlotsOf(ticket));
  if (slots > static_cast<size_t>(kFan)) return FirstUncounted(ticket);
  const auto parts = static_cast<uint64_t>(PartsOf(ticket));
  for (size_t slot = parts == 1 ? 1 : 0; slot < slots; ++slot) {
    const uint64_t word = slots_[slot].word.load(std::memory_order_seq_cst);
    if (word >> kNumberShift != number || (word & kPartMask) != parts) {
      return static_cast<int>(slot);
    }
  }
  return -1;
}

int Lane::FirstUncounted(uint64_t ticket) const {
  const uint64_t number = ticket >> kNumberShift;
  const int uncounted = PartsOf(ticket) == 1 ? 1 : 0;
  int words = SlotsOf(ticket);
  size_t level = 0;
  int slots = kFan;  // below a word
  for (; Above(words) > kFan; words = Above(words), slots *= kFan) ++level;
  for (int i = 0; i < Above(words); ++i) {
    const int below = std::min(words - i * kFan, kFan) - (i == 0 && level == 0 ? uncounted : 0);
    const uint64_t word = sums_[level][static_cast<size_t>(i)].word.load(std::memory_order_seq_cst);
    if (word >> kSumShift != number || static_cast<int>(word & kSumMask) != below) return i * slots;
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
