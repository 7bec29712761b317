#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/futex.h"

// One job after another, cut into parts that threads claim. Nothing here waits, sleeps or starts a
// thread.
namespace hone::runtime {

/// A job: `slots` times `parts` parts. Slot s is the share of the thread on seat s; whoever has
/// done its own goes on with those of others.
struct Work {
  /// Computes one part, numbered from 0 to slots * parts - 1 (slot s owns those from s * parts on),
  /// with what belongs to slot `slot`, which no other thread uses meanwhile. Must not throw.
  using Part = void (*)(void* context, int part, int slot);
  Part part = nullptr;
  void* context = nullptr;
  int slots = 1;
  int parts = 1;  ///< of each slot; 1 to Lane::kMaxParts
  /// Each slot by a thread of its own, which is waited for: for what must not be shared out anew,
  /// such as a measurement.
  bool fixed = false;
};

/// Where the threads of a test stop.
class LaneObserver {
 public:
  enum class Point {
    kBeforeClaim,
    kAfterClaim,
    kAfterPart,
    kBeforeSleep,
    kAfterSleep,
    kBeforeWake,
  };
  virtual ~LaneObserver() = default;
  virtual void At(Point point, int slot) = 0;
};

/// What a thread does between two parts, when it holds none.
class Breather {
 public:
  virtual ~Breather() = default;
  virtual void Breathe() = 0;
};

/// The owner opens one job after another; it has slot 0. Any thread may work on a job by its
/// ticket, however late: a part is claimed by one atomic step on a word that holds the job's number
/// beside the next part's, so a ticket of a job that is over claims nothing. A job is done when all
/// its parts are claimed and all claimed parts are done; nobody waits for a thread without a claim.
/// Where there are many slots the owner looks at few words: the last one of kFan slots to be done
/// counts in a word of all of them, and so on up.
///
/// Open and the reading of what a job wrote are the owner's, the rest any thread's. The lane must
/// outlive every thread that may hold a ticket.
class Lane {
 public:
  static constexpr int kMaxParts = 1023;

  /// Slots that have a word above them together.
  static constexpr int kFan = 8;

  /// `jobs` is how many there were before, which is for tests: numbers come round.
  explicit Lane(int slots, LaneObserver* observer = nullptr, uint64_t jobs = 0);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  int slots() const { return static_cast<int>(slots_.size()); }

  /// Begins a job and gives its ticket; the one before is done. 2 <= work.slots <= slots().
  uint64_t Open(const Work& work);
  /// Whether who sleeps while work of the last ticket is to be done is to be woken (set before
  /// Open).
  bool wakes_all() const { return wakes_all_.load(std::memory_order_relaxed); }
  void SetWakesAll(bool wakes) { wakes_all_.store(wakes, std::memory_order_relaxed); }
  /// The last ticket; 0 before the first. Sequentially consistent, for who is about to sleep.
  uint64_t ticket() const { return ticket_.load(std::memory_order_seq_cst); }

  /// Takes slot `slot` of that job, unless another has it, and claims parts until there are none.
  /// Gives how many it has done. Before each claim but the first it breathes, if it is to.
  int WorkOn(uint64_t ticket, int slot, Breather* breather = nullptr);

  /// A slot, or the first of several, with parts that are not done; -1: all are, and what they
  /// wrote is visible.
  int FirstUndone(uint64_t ticket) const;

  /// A slot whose thread is within a part, the owner's excepted; -1: there is none. A guess: it may
  /// be over at once.
  int FirstBusy(uint64_t ticket) const;

  static int SlotsOf(uint64_t ticket) { return static_cast<int>(ticket & kSlotsMask) + 1; }

  /// Brings a slot's word here for writing.
  void Prefetch(int slot) const {
    if (slot >= slots()) return;  // of a lane that the thread has just left
    __builtin_prefetch(&slots_[static_cast<size_t>(slot)].word, /*rw=*/1);
  }

  /// The thread of this slot is at a point where a test may stop it.
  void Reach(LaneObserver::Point point, int slot) const {
    if (observer_ != nullptr) [[unlikely]]
      observer_->At(point, slot);
  }

  /// Futex word of an owner that sleeps until its job is done. The owner alone puts it to kAwake,
  /// when it is, and to kAsleep; who wakes it puts it to kBeingWoken before.
  std::atomic<uint32_t>& owner_sleeps() { return owner_sleeps_; }

 private:
  // A ticket is a job's number (upper bits), how many parts a slot has and how many slots, less
  // one. A slot's word is the number of the last job in which it was touched, whether a thread has
  // taken the slot there, the next part and how many parts are done. Where slots have one part
  // each, that of slot 0 is the owner's and its word stays as it is.
  //
  // 43 bits of numbers may come round where a lane has work for months: of two numbers the one is
  // later that comes sooner after the other. That holds for numbers less than half of them apart,
  // so once in kRenewEach jobs all words get the number of the last job.
  static constexpr int kNextShift = 10;
  static constexpr uint64_t kPartMask = (uint64_t{1} << kNextShift) - 1;
  static constexpr uint64_t kOnePart = uint64_t{1} << kNextShift;
  static constexpr uint64_t kTaken = uint64_t{1} << (2 * kNextShift);
  static constexpr int kNumberShift = 2 * kNextShift + 1;
  static constexpr uint64_t kNumberMask = ~uint64_t{0} >> kNumberShift;
  static constexpr uint64_t kRenewEach = uint64_t{1} << 40;
  static constexpr int kSlotsBits = 10;
  static constexpr uint64_t kSlotsMask = (uint64_t{1} << kSlotsBits) - 1;
  static_assert(kMaxParts == kPartMask && kSlotsBits + kNextShift <= kNumberShift);

  static bool IsLater(uint64_t number, uint64_t than) {
    return static_cast<int64_t>((number - than) << kNumberShift) > 0;
  }

  struct Job {
    uint64_t number = 0;
    int slots = 0;
    int parts = 0;
    bool fixed = false;
    Work::Part part = nullptr;
    void* context = nullptr;
  };
  struct alignas(64) Slot {
    std::atomic<uint64_t> word{0};
    std::atomic<bool> busy{false};  // its thread is within a part
  };

  static int PartsOf(uint64_t ticket) { return static_cast<int>(ticket >> kSlotsBits) & kMaxParts; }
  Job JobOf(uint64_t ticket) const;
  void RenewWords(uint64_t number);
  int Take(const Job& job, Slot& slot);
  int Claim(const Job& job, Slot& slot);
  int Help(const Job& job, int slot, Breather* breather);
  void Do(const Job& job, int victim, int part, int slot);
  void CountUp(const Job& job, int slot);
  int FirstUncounted(uint64_t ticket) const;

  // One cache line: the job goes out with its ticket. Late threads read the fields while the owner
  // writes those of the next job; what they read counts only if a claim succeeds afterwards, and
  // then the job was not over. How many parts to claim stands in the ticket: that must not change.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  std::atomic<Work::Part> part_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<bool> fixed_{false};
  std::atomic<bool> wakes_all_{false};

  struct alignas(64) Sum {
    std::atomic<uint64_t> word{0};  // number of a job, how many below are done in it
  };
  static constexpr int kSumShift = 16;
  static constexpr uint64_t kSumMask = (uint64_t{1} << kSumShift) - 1;
  /// How many words of the level above belong to so many.
  static int Above(int words) { return (words + kFan - 1) / kFan; }

  std::vector<Slot> slots_;
  std::vector<std::vector<Sum>> sums_;  // by level: of kFan slots each, of kFan of those each, ...
  LaneObserver* observer_;
  alignas(64) std::atomic<uint32_t> owner_sleeps_{kAwake};
};

}  // namespace hone::runtime
