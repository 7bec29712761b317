#include "runtime/thread_pool.h"

#include <immintrin.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <new>
#include <system_error>
#include <utility>

#include "base/core/check.h"
#include "base/core/cpu.h"
#include "base/core/status_macros.h"
#include "runtime/crew.h"
#include "runtime/futex.h"
#include "runtime/message.h"
#include "runtime/plan_check.h"
#include "runtime/rounding.h"
#include "runtime/spin_budget.h"
#include "runtime/stop_rate.h"

namespace hone::runtime {
namespace {

constexpr int kPauses = 32;  // between looks at the clock
// When a waiting thread fetches its slot's word for writing: not while the owner still looks at it.
constexpr int kPrefetchAt = 8;

constexpr int64_t kBlameNs = 10'000'000, kSoonNs = 20'000'000;
constexpr int64_t kLeftOutNs = 50'000'000, kMostLeftOutNs = 800'000'000;
// For how long a thread that was stopped within a part gives way, and how often: within what the
// system gives a thread at least.
constexpr int64_t kGivesWayNs = 1'000'000'000, kTurnNs = 1'000'000;
// A crew counts as running for so long after it was seen so.
constexpr int64_t kRunningNs = 2'000'000;

int64_t StopsOfThisThread() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_nivcsw;
}

}  // namespace

const MonotonicClock& ThreadPool::SystemClock() {
  // Never destroyed: threads run on while the process exits.
  static const MonotonicClock& clock = *new SystemMonotonicClock;
  return clock;
}

ThreadPool::ThreadPool(const Options& options)
    : clock_(options.clock != nullptr ? *options.clock : SystemClock()),
      spin_ns_(options.spin_ns),
      observer_(options.observer),
      yield_(options.yield != nullptr ? options.yield : [] { ::sched_yield(); }),
      stops_(options.stops != nullptr ? options.stops : StopsOfThisThread) {}

Result<std::shared_ptr<ThreadPool>> ThreadPool::Create(const Options& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return Invalid("a pool of ", options.threads, " threads; 1 to ", kMaxThreads, " are possible");
  }
  std::shared_ptr<ThreadPool> pool(new ThreadPool(options));
  const std::lock_guard<std::mutex> lock(pool->mutex_);
  for (int thread = 1; thread < options.threads; ++thread) {
    const auto i = static_cast<size_t>(thread);
    const int cpu = options.cpus.empty() ? -1 : options.cpus[i % options.cpus.size()];
    HONE_RETURN_IF_ERROR(pool->StartLocked(cpu));
    // Waiting one by one costs microseconds and makes pinning errors errors of Create. A thread
    // that begins makes system calls, which a caller may forbid next.
    Worker& worker = pool->workers_.back();
    worker.started.wait(0);
    if (worker.started.load() < 0) {
      return Invalid("cannot pin thread ", thread, " to CPU ", cpu, ": not an allowed CPU");
    }
  }
  return pool;
}

Result<std::shared_ptr<ThreadPool>> ThreadPool::InThisProcess(std::shared_ptr<ThreadPool> pool,
                                                              int threads) {
  if (!pool->IsForked()) return pool;
  const std::lock_guard<std::mutex> lock(pool->heir_mutex_);
  std::shared_ptr<ThreadPool> heir = pool->heir_.lock();
  if (heir == nullptr || heir->IsForked()) {  // that one is of a process between
    HONE_ASSIGN_OR_RETURN(heir, Create({.threads = threads, .spin_ns = pool->spin_ns_}));
    pool->heir_ = heir;
    return heir;
  }
  HONE_RETURN_IF_ERROR(heir->Grow(std::min(heir->threads() + threads, pool->threads())));
  return heir;
}

Status ThreadPool::Grow(int threads) {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (threads_.load() < std::min(threads, kMaxThreads)) HONE_RETURN_IF_ERROR(StartLocked(-1));
  return {};
}

Status ThreadPool::StartLocked(int cpu) {
  Worker& worker = workers_.emplace_back();
  worker.table.store(&nowhere_);
  worker.sleeper.Observe(observer_);
  try {
    worker.thread = std::thread(&ThreadPool::WorkerMain, this, std::ref(worker), cpu);
  } catch (const std::bad_alloc&) {
    workers_.pop_back();  // without a thread it must be lent to nobody
    throw;
  } catch (const std::system_error& error) {
    workers_.pop_back();
    return SystemError(error.code().value(),
                       Message("cannot start thread ", threads_.load() + 1,
                               "; give fewer (hone_context_options.threads or HONE_THREADS)"));
  }
  threads_.fetch_add(1);
  return {};
}

ThreadPool::~ThreadPool() {
  if (IsForked()) {
    // Handles of threads that are not in this process: neither to be joined nor let go of.
    new std::deque<Worker>(std::move(workers_));
    return;
  }
  for (Worker& worker : workers_) {
    worker.table.store(nullptr, std::memory_order_seq_cst);
    worker.sleeper.WakeIfAsleep(0);
  }
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
  }
}

void ThreadPool::WakeBelow(Table& table, int seat, int slots, int waker) {
  for (int below = kWakes * seat + 1; below <= kWakes * (seat + 1) && below < slots; ++below) {
    Worker* const member =
        table.members[static_cast<size_t>(below)].load(std::memory_order_relaxed);
    if (member == nullptr) {
      WakeBelow(table, below, slots, waker);  // nobody does it there
    } else {
      member->sleeper.WakeIfAsleep(waker);
    }
  }
}

void ThreadPool::WakeOwner(Lane& lane, int seat) {
  std::atomic<uint32_t>& sleeps = lane.owner_sleeps();
  if (sleeps.load(std::memory_order_seq_cst) == kAwake) return;
  lane.Reach(LaneObserver::Point::kBeforeWake, seat);
  uint32_t seen = kAsleep;
  if (!sleeps.compare_exchange_strong(seen, kBeingWoken, std::memory_order_seq_cst) &&
      seen == kAwake) {
    return;
  }
  lane.Reach(LaneObserver::Point::kBeforeWake, seat);
  FutexWake(sleeps);  // also where another is about to: that one may be stopped
}

void ThreadPool::Join(Crew& crew) {
  HONE_CHECK(crew.threads() >= 1 && crew.threads() <= threads())
      << crew.threads() << " of " << threads() << " threads";
  const int64_t now_ns = clock_.NowNs();
  const std::lock_guard<std::mutex> lock(mutex_);
  running_.reserve(crews_.size() + 1);
  widths_.reserve(crews_.size() + 1);
  crews_.reserve(crews_.size() + 1);
  free_tables_.reserve(tables_.size() + 1);
  const auto fits = [&](const Table* table) { return table->lane.slots() >= crew.threads(); };
  const auto found = std::find_if(free_tables_.begin(), free_tables_.end(), fits);
  if (found != free_tables_.end()) {
    crew.table_ = *found;
    free_tables_.erase(found);
  } else {
    crew.table_ = tables_.emplace_back(std::make_unique<Table>(crew.threads(), observer_)).get();
  }
  crew.lane_ = &crew.table_->lane;
  crews_.push_back(&crew);  // whatever could be refused it has
  ShareLocked(&crew, now_ns);
}

void ThreadPool::Leave(Crew& crew) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int seat = 1; seat < crew.threads(); ++seat) Release(crew, seat);
  free_tables_.push_back(crew.table_);
  crews_.erase(std::find(crews_.begin(), crews_.end(), &crew));
}

void ThreadPool::Share(Crew& asking) {
  const int64_t now_ns = clock_.NowNs();
  const std::lock_guard<std::mutex> lock(mutex_);
  ShareLocked(&asking, now_ns);
}

void ThreadPool::Blame(Crew& crew, int seat, int64_t since_ns) {
  const int64_t now_ns = clock_.NowNs();
  thread_local StopRate of_this_thread;
  const bool all_share = of_this_thread.IsHigh(now_ns, stops_);
  const std::lock_guard<std::mutex> lock(mutex_);
  Worker* const worker =
      crew.table_->members[static_cast<size_t>(seat)].load(std::memory_order_relaxed);
  // Who leads a branch waits for it, and who waits for all branches: that is once.
  if (worker == nullptr || since_ns < worker->blamed_ns) return;
  const bool again = worker->blamed_before && since_ns - worker->blamed_ns < kBlameNs;
  worker->blamed_ns = now_ns;
  worker->blamed_before = !again;
  worker->gives_way_until_ns.store(all_share ? 0 : now_ns + kGivesWayNs, std::memory_order_relaxed);
  if (!again) return;
  // As long as it fares no better, it is tried less and less often.
  const bool soon = since_ns - worker->left_out_until_ns < kSoonNs;
  worker->left_out_ns = soon ? std::min(2 * worker->left_out_ns, kMostLeftOutNs) : kLeftOutNs;
  worker->left_out_until_ns = now_ns + worker->left_out_ns;
  ShareLocked(&crew, now_ns);
}

void ThreadPool::ShareLocked(Crew* asking, int64_t now_ns) {
  const std::thread::id caller =
      asking == nullptr ? std::thread::id() : asking->caller_.load(std::memory_order_relaxed);
  running_.clear();
  widths_.clear();
  for (Crew* crew : crews_) {
    const uint64_t runs = crew->runs_.load(std::memory_order_relaxed);
    const bool runs_now = crew == asking || crew->running_.load(std::memory_order_relaxed);
    // One thread runs one model at a time: what it ran before has ended.
    const bool ended = !runs_now && caller != std::thread::id() &&
                       crew->caller_.load(std::memory_order_relaxed) == caller;
    if (runs_now || runs != crew->noted_runs_) crew->noted_ns_ = now_ns;
    crew->noted_runs_ = runs;
    if (!ended && now_ns - crew->noted_ns_ < kRunningNs) running_.push_back(crew);
  }
  // Those that want the least first: what they leave is for the others.
  std::sort(running_.begin(), running_.end(),
            [](const Crew* a, const Crew* b) { return a->threads_ < b->threads_; });
  int64_t again_ns = now_ns + kRunningNs / 2;
  for (const Worker& worker : workers_) again_ns = std::max(again_ns, worker.left_out_until_ns);
  int left = threads();
  for (size_t i = 0; i < running_.size(); ++i) {
    const int fair = left / static_cast<int>(running_.size() - i);
    widths_.push_back(std::clamp(fair, 1, running_[i]->threads_));
    left = std::max(0, left - widths_.back());
  }
  // Threads are taken before they are given.
  for (Crew* crew : crews_) {
    const auto at = std::find(running_.begin(), running_.end(), crew);
    const int keeps =
        at == running_.end() ? 1 : widths_[static_cast<size_t>(at - running_.begin())];
    for (int seat = crew->threads_ - 1; seat > 0; --seat) {
      const Worker* const worker = crew->table_->members[static_cast<size_t>(seat)].load();
      if (worker == nullptr) continue;
      if (seat >= keeps || worker->left_out_until_ns > now_ns) Release(*crew, seat);
    }
    if (keeps == 1) crew->width_.store(1, std::memory_order_relaxed);
    crew->ask_again_ns_.store(at == running_.end() ? 0 : again_ns, std::memory_order_relaxed);
  }
  for (size_t i = 0; i < running_.size(); ++i) Seat(*running_[i], widths_[i], now_ns);
}

void ThreadPool::Release(Crew& crew, int seat) {
  Worker* const worker = crew.table_->members[static_cast<size_t>(seat)].exchange(nullptr);
  if (worker == nullptr) return;
  worker->table.store(&nowhere_, std::memory_order_seq_cst);
  worker->lent = false;
}

// Fills the seats up to `width` with whom the crew has and with threads that nobody has.
void ThreadPool::Seat(Crew& crew, int width, int64_t now_ns) {
  int seat = 1;
  for (; seat < width; ++seat) {
    std::atomic<Worker*>& place = crew.table_->members[static_cast<size_t>(seat)];
    if (place.load(std::memory_order_relaxed) != nullptr) continue;
    const auto free = std::find_if(workers_.begin(), workers_.end(), [&](const Worker& worker) {
      return !worker.lent && worker.left_out_until_ns <= now_ns;
    });
    Worker* worker = free == workers_.end() ? nullptr : &*free;
    for (int last = width - 1; worker == nullptr && last > seat; --last) {
      worker = crew.table_->members[static_cast<size_t>(last)].exchange(nullptr);
    }
    if (worker == nullptr) break;
    worker->lent = true;
    worker->seat.store(seat, std::memory_order_relaxed);
    worker->table.store(crew.table_, std::memory_order_seq_cst);
    place.store(worker, std::memory_order_seq_cst);
  }
  crew.width_.store(seat, std::memory_order_relaxed);
}

// The turns of a thread that shares its core: at the end of one it gives the core away.
class ThreadPool::Turns final : public Breather {
 public:
  explicit Turns(const ThreadPool& pool, const Worker& self) : pool_(pool), self_(self) {
    of_this_thread = this;
  }

  static inline thread_local Turns* of_this_thread = nullptr;  // ends with the thread

  void Breathe() override {
    const int64_t now_ns = pool_.clock_.NowNs();
    if (now_ns - begin_ns_ < kTurnNs) return;
    pool_.yield_();
    begin_ns_ = pool_.clock_.NowNs();
  }
  /// Itself as long as the thread shares its core, else null.
  Breather* IfShared() {
    const int64_t until_ns = self_.gives_way_until_ns.load(std::memory_order_relaxed);
    return until_ns != 0 && pool_.clock_.NowNs() < until_ns ? this : nullptr;
  }

 private:
  const ThreadPool& pool_;
  const Worker& self_;
  int64_t begin_ns_ = 0;
};

Breather* ThreadPool::BreatherOfThisThread() {
  Turns* const turns = Turns::of_this_thread;
  return turns == nullptr ? nullptr : turns->IfShared();
}

void ThreadPool::WorkerMain(Worker& self, int cpu) {
  const DefaultRounding rounding;
  const bool pinned = cpu < 0 || PinThisThread({cpu}).ok();
  if (cpu < 0) self.sleeper.MayMove(::gettid());
  self.started.store(pinned ? 1 : -1);
  self.started.notify_one();

  SpinBudget spin(spin_ns_);
  Turns turns(*this, self);
  const Table* last = nullptr;
  uint64_t seen = 0;
  bool spins = false;
  for (;;) {
    Table* table = nullptr;
    uint64_t ticket = 0;
    const auto has_work = [&] {
      table = self.table.load(std::memory_order_seq_cst);
      if (table == nullptr) return true;
      ticket = table->lane.ticket();
      return ticket != (table == last ? seen : 0);
    };
    bool came = has_work();
    if (!came && spins) {
      const int64_t until_ns = clock_.NowNs() + spin.ns();
      for (int i = 0; !came; ++i) {
        _mm_pause();
        came = has_work();
        // With work there may be no table any more: the pool ends.
        if (!came && i == kPrefetchAt)
          table->lane.Prefetch(self.seat.load(std::memory_order_relaxed));
        if (i % kPauses == kPauses - 1 && clock_.NowNs() >= until_ns) break;
      }
      spin.Learn(came);
    }
    if (!came) self.sleeper.Sleep(has_work, self.seat);
    if (table == nullptr) return;
    last = table;
    seen = ticket;
    // Only work renews the spinning: jobs for others do not keep an idle thread awake.
    const int seat = self.seat.load(std::memory_order_relaxed);
    if (kWakes * seat + 1 < Lane::SlotsOf(ticket) && table->lane.wakes_all())
      WakeBelow(*table, seat, Lane::SlotsOf(ticket), seat);
    const int done = table->lane.WorkOn(ticket, seat, turns.IfShared());
    spins = seat < Lane::SlotsOf(ticket);
    if (done > 0) WakeOwner(table->lane, seat);
  }
}

}  // namespace hone::runtime
