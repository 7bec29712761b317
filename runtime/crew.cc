#include "runtime/crew.h"

#include <immintrin.h>

#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "base/core/status_macros.h"
#include "runtime/futex.h"
#include "runtime/rounding.h"

namespace hone::runtime {
namespace {

// Waking a thread takes a few microseconds of the caller's time, and on a busy machine it comes too
// late for short work: what the woken did decides when to wake them again.
constexpr int64_t kWorthWakingNs = 4'000, kMostWorthWakingNs = 1'000'000;
constexpr int64_t kWakingPaidNs = 20'000;
// A short wait is no thread's fault.
constexpr int64_t kShortWaitNs = 100'000;
// Pauses before the first look at the clock, and between looks.
constexpr int kFirstPauses = 64;
constexpr int kPauses = 16;

}  // namespace

Crew::Crew(std::shared_ptr<ThreadPool> pool, int threads)
    : pool_(std::move(pool)), clock_(pool_->clock_), threads_(threads), spin_(pool_->spin_ns_) {
  pool_->Join(*this);
}

Crew::Crew(const Executor& executor, int threads)
    : executor_(executor),
      own_lane_(std::make_unique<Lane>(threads)),
      clock_(ThreadPool::SystemClock()),
      threads_(threads),
      lane_(own_lane_.get()),
      spin_(0),
      width_(threads) {}

Crew::Crew(int threads, int64_t spin_ns, LaneObserver* observer, const MonotonicClock& clock)
    : own_lane_(std::make_unique<Lane>(threads, observer)),
      clock_(clock),
      threads_(threads),
      leader_(kNobody),
      lane_(own_lane_.get()),
      spin_(spin_ns) {}

Result<std::unique_ptr<Crew>> Crew::Create(const ThreadPool::Options& options) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<ThreadPool> pool, ThreadPool::Create(options));
  return std::make_unique<Crew>(std::move(pool), options.threads);
}

Crew::~Crew() {
  if (pool_ != nullptr && !pool_->IsForked()) pool_->Leave(*this);
}

void Crew::Begin() {
  running_.store(true, std::memory_order_relaxed);
  runs_.store(runs_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  caller_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  AskForThreads();
}

void Crew::AskAgain() {
  if (clock_.NowNs() < ask_again_ns_.load(std::memory_order_relaxed)) return;
  pool_->Share(*this);
}

void Crew::Run(const Work& work, int64_t expected_ns, Own* own) {
  HONE_CHECK(work.slots >= 1 && work.slots <= threads_) << work.slots << " of " << threads_;
  if (has_executor() && work.slots > 1) return RunOnExecutor(work, own);
  HONE_CHECK(!work.fixed || work.slots <= width()) << work.slots << " of " << width() << " threads";
  const int64_t begin_ns = own != nullptr ? clock_.NowNs() : 0;
  uint64_t ticket = 0;
  int parts = work.parts;
  if (work.slots == 1) {
    for (int part = 0; part < parts; ++part) work.part(work.context, part, 0);
  } else {
    const bool by_tree = work.slots > ThreadPool::kWakes + 1;
    // Who is woken wakes others: whether that pays is known before anybody has looked who sleeps.
    const bool wakes = by_tree && (work.fixed || expected_ns <= 0 || IsWorthWaking(expected_ns));
    if (by_tree) lane_->SetWakesAll(wakes);
    ticket = lane_->Open(work);
    if (table_ != nullptr && wakes) ThreadPool::WakeBelow(*table_, 0, work.slots, 0);
    if (table_ != nullptr && !by_tree) WakeMembers(work.slots, expected_ns, work.fixed);
    parts = lane_->WorkOn(ticket, 0);
    helped_ns_ += expected_ns * (work.slots * work.parts - parts) / work.parts;
  }
  if (own != nullptr) *own = {.parts = parts, .ns = clock_.NowNs() - begin_ns};
  if (work.slots > 1) WaitUntilDone(ticket, work, expected_ns);
}

void Crew::RunOnExecutor(const Work& work, Own* own) {
  struct Call {
    Lane* lane;
    const MonotonicClock& clock;
    uint64_t ticket;
    Own* own;
    std::atomic<bool> told{false};
  } call{lane_, clock_, lane_->Open(work), own};
  const auto body = [](void* context, int32_t slot) {
    const DefaultRounding rounding;
    Call& of = *static_cast<Call*>(context);
    const int64_t begin_ns = of.own != nullptr ? of.clock.NowNs() : 0;
    const int parts = of.lane->WorkOn(of.ticket, slot);
    // Which call is the caller's nobody knows: the first that did something speaks for it.
    if (of.own == nullptr || parts == 0 || of.told.exchange(true)) return;
    *of.own = {.parts = parts, .ns = of.clock.NowNs() - begin_ns};
  };
  executor_.parallel_for(executor_.self, work.slots, body, &call);
  HONE_CHECK(lane_->FirstUndone(call.ticket) < 0) << "parallel_for did not make all its calls";
}

void Crew::WakeMembers(int slots, int64_t expected_ns, bool fixed) {
  bool decided = false;
  for (int seat = 1; seat < slots; ++seat) {
    ThreadPool::Worker* const member =
        table_->members[static_cast<size_t>(seat)].load(std::memory_order_relaxed);
    // Sequentially consistent with the sleeper's side: either it sees the ticket or we see it
    // asleep.
    if (member == nullptr || !member->sleeper.IsAsleep()) continue;
    if (!decided && !fixed && expected_ns > 0 && !IsWorthWaking(expected_ns)) return;
    decided = true;
    member->sleeper.WakeIfAsleep(0);
  }
}

bool Crew::IsWorthWaking(int64_t expected_ns) {
  unwoken_ns_ += expected_ns;
  if (unwoken_ns_ < worth_waking_ns_) return false;
  worth_waking_ns_ =
      helped_ns_ < kWakingPaidNs ? std::min(kMostWorthWakingNs, 2 * unwoken_ns_) : kWorthWakingNs;
  helped_ns_ = unwoken_ns_ = 0;
  return true;
}

void Crew::WaitUntilDone(uint64_t ticket, const Work& work, int64_t expected_ns) {
  for (int i = 0; i < kFirstPauses; ++i) {
    if (lane_->FirstUndone(ticket) < 0) return;
    _mm_pause();
  }
  int late = lane_->FirstBusy(ticket);
  const int64_t begin_ns = clock_.NowNs();
  // Parts that take long end at different times even where all threads run.
  const int64_t until_ns = begin_ns + spin_.ns() + expected_ns / std::max(4, work.parts);
  int64_t now_ns = begin_ns;
  bool came = false;
  while (!came && now_ns < until_ns) {
    const int busy = lane_->FirstBusy(ticket);
    if (busy >= 0) late = busy;
    for (int i = 0; i < kPauses && !came; ++i) {
      _mm_pause();
      came = lane_->FirstUndone(ticket) < 0;
    }
    now_ns = clock_.NowNs();
  }
  spin_.Learn(came);
  if (!came) {
    SleepUntilDone(ticket);
    now_ns = clock_.NowNs();
  }
  if (work.fixed || expected_ns <= 0 || late < 0) return;
  if (now_ns - begin_ns > std::max(expected_ns, kShortWaitNs)) Blame(late, begin_ns);
}

void Crew::Blame(int late, int64_t since_ns) {
  Crew& crew = whole_ != nullptr ? *whole_ : *this;
  if (crew.pool_ != nullptr) crew.pool_->Blame(crew, ThreadOf(late), since_ns);
}

int Crew::Help(int thread, Breather* breather) {
  // Slot 0, whose part may need no claim, is the leader's alone.
  const int leader = leader_.load(std::memory_order_acquire);
  if (leader == kNobody || leader == thread) return 0;
  const int slot = thread - leader;
  const int done = lane_->WorkOn(lane_->ticket(), slot < 0 ? slot + threads_ : slot, breather);
  if (done > 0) ThreadPool::WakeOwner(*lane_, thread);
  return done;
}

void Crew::SleepUntilDone(uint64_t ticket) {
  std::atomic<uint32_t>& sleeps = lane_->owner_sleeps();
  for (;;) {
    lane_->Reach(LaneObserver::Point::kBeforeSleep, 0);
    sleeps.store(kAsleep, std::memory_order_seq_cst);
    if (lane_->FirstUndone(ticket) < 0) break;
    lane_->Reach(LaneObserver::Point::kBeforeSleep, 0);
    FutexWait(sleeps, kAsleep);
    lane_->Reach(LaneObserver::Point::kAfterSleep, 0);
  }
  sleeps.store(kAwake, std::memory_order_relaxed);
}

}  // namespace hone::runtime
