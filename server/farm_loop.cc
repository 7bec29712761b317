#include "server/farm_loop.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/core/check.h"
#include "base/core/random_id.h"
#include "base/core/thread_name.h"
#include "base/core/timed_wait.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/status.h"

namespace hone::server {
namespace {

constexpr int64_t kTickNs = 100'000'000;
constexpr int64_t kLookNs = 100'000'000;
constexpr int64_t kRetryNs = 200'000'000;
constexpr size_t kMostWorks = 4096;  ///< of one group commit

bool IsEmpty(const db::FarmUnit& unit) { return unit.changes.empty() && unit.facts.empty(); }

/// What callers are told, also those who only want to read: the loop does nothing meanwhile.
absl::Status CannotWrite(const std::string& why) {
  return absl::ResourceExhaustedError(
      "honed cannot write its log just now, and answers by itself when it can again: " + why);
}

/// A change without an effect, which tells whether there is space: an answer that nobody will ask
/// for, and so old that it is forgotten with the next ones.
db::FarmUnit ProbeOfSpace() {
  db::FarmUnit unit;
  unit.changes.push_back(db::FarmRequest{.caller = "honed", .id = RandomId().ToHex()});
  return unit;
}

}  // namespace

void CommitTimes::Add(int64_t took_ns, int64_t num_units) {
  ++commits;
  units += num_units;
  total_ns += took_ns;
  worst_ns = std::max(worst_ns, took_ns);
  const auto bucket = std::ranges::lower_bound(kEndsNs, took_ns);
  ++buckets[static_cast<size_t>(bucket - kEndsNs.begin())];
}

int64_t CommitTimes::QuantileNs(double share) const {
  int64_t below = 0;
  for (size_t i = 0; i < kEndsNs.size(); ++i) {
    below += buckets[i];
    if (below > 0 && static_cast<double>(below) >= share * static_cast<double>(commits)) {
      return std::min(kEndsNs[i], worst_ns);
    }
  }
  return worst_ns;
}

FarmLoop::FarmLoop(Farm& farm, db::FarmStore& store, FarmSink& sink, const MonotonicClock& clock)
    : farm_(farm), store_(store), sink_(sink), clock_(clock) {}

FarmLoop::~FarmLoop() { Stop(); }

void FarmLoop::Start() {
  started_ = true;
  thread_ = std::thread([this] {
    NameThisThread("farm-loop");
    // It sleeps in each sync of the log, and everybody waits until it has its turn again.
    RaiseThisThread();
    Loop();
  });
}

void FarmLoop::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  DropQueue();
}

void FarmLoop::StopWhenStuck() {
  {
    const std::lock_guard lock(mutex_);
    patient_ = false;
  }
  changed_.notify_all();
}

void FarmLoop::DropQueue() {
  std::deque<Work> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(queue_);
  }
  for (Work& work : dropped) {
    if (work.done) work.done(farm_, absl::CancelledError("honed is ending"), clock_.NowNs());
  }
}

void FarmLoop::Post(Event event) {
  Post(Work{.prepare = [event = std::move(event)](Farm& farm, db::FarmStore&, db::FarmUnit&,
                                                  int64_t now_ns) {
    event(farm, now_ns);
    return absl::OkStatus();
  }});
}

void FarmLoop::Post(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      queue_.push_back(std::move(work));
      work = {};
    }
  }
  // Refused: nobody else touches the Farm any more once the thread has ended, and `done` of a work
  // that never ran does nothing but tell its caller.
  if (work.done) work.done(farm_, absl::CancelledError("honed is ending"), clock_.NowNs());
  changed_.notify_all();
}

absl::Status FarmLoop::Ask(Work work) {
  HONE_RETURN_IF_ERROR(CheckWritable());
  work.asked = true;
  return Run(std::move(work));
}

absl::Status FarmLoop::Run(Work work) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable ready;
    bool done = false;
    absl::Status status;
  };
  const auto answer = std::make_shared<Answer>();
  work.done = [answer, done = std::move(work.done)](Farm& farm, const absl::Status& status,
                                                    int64_t now_ns) {
    if (done) done(farm, status, now_ns);
    {
      const std::lock_guard lock(answer->mutex);
      answer->done = true;
      answer->status = status;
    }
    answer->ready.notify_all();
  };
  Post(std::move(work));
  std::unique_lock lock(answer->mutex);
  answer->ready.wait(lock, [&] { return answer->done; });
  return answer->status;
}

absl::Status FarmLoop::CheckWritable() const {
  const std::string why = trouble();
  return why.empty() ? absl::OkStatus() : CannotWrite(why);
}

std::string FarmLoop::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

int64_t FarmLoop::trouble_ns() const {
  const std::lock_guard lock(mutex_);
  return trouble_.empty() ? 0 : clock_.NowNs() - trouble_since_ns_;
}

CommitTimes FarmLoop::commit_times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

void FarmLoop::PutOffCopies(std::deque<Work>& works) {
  std::set<std::string> requests;
  const auto copies = std::stable_partition(works.begin(), works.end(), [&](const Work& work) {
    return work.request.empty() || requests.insert(work.request).second;
  });
  const std::lock_guard lock(mutex_);
  queue_.insert(queue_.begin(), std::move_iterator(copies), std::move_iterator(works.end()));
  works.erase(copies, works.end());
}

std::vector<FarmLoop::Pending> FarmLoop::Gather(std::deque<Work> works) {
  std::vector<Pending> pending;
  const auto take = [&](Work work, db::FarmUnit unit, absl::Status status, bool last = false) {
    FarmStep step = last ? farm_.Take() : farm_.TakePart();
    const bool said = !step.changes.empty() || !step.messages.empty() || !step.closings.empty();
    HONE_CHECK(!said || !work.asked || work.undo) << "a call changed what it cannot take back";
    for (db::FarmChange& change : step.changes) unit.changes.push_back(std::move(change));
    step.changes.clear();
    // Nobody outside sees these: a driver prepares their commit while this one is under way.
    for (const Delivery& delivery : step.deliveries) sink_.Deliver(delivery);
    step.deliveries.clear();
    pending.push_back({std::move(work), std::move(unit), std::move(step), std::move(status)});
  };
  farm_.OnTurn(clock_.NowNs());
  // What the answers to the last commit led to.
  take({}, {}, absl::OkStatus());
  const bool alone = !works.empty() && works.front().undo != nullptr;
  for (Work& work : works) {
    db::FarmUnit unit;
    absl::Status status;
    if (work.prepare) status = work.prepare(farm_, store_, unit, clock_.NowNs());
    if (!status.ok()) unit = {};
    take(std::move(work), std::move(unit), std::move(status));
  }
  if (alone) return pending;
  const int64_t now_ns = clock_.NowNs();
  if (now_ns >= next_tick_ns_) {
    next_tick_ns_ = now_ns + kTickNs;
    farm_.OnTurn(now_ns);  // the pause may have come in the middle of this turn
    farm_.Tick(now_ns);
  }
  // The grants for all of it together.
  take({}, {}, absl::OkStatus(), true);
  return pending;
}

void FarmLoop::RefuseAsked(const absl::Status& status, std::vector<Pending>& pending) {
  std::deque<Work> refused;
  for (Pending& p : pending) {
    if (!p.work.asked) continue;
    const Work work = std::exchange(p.work, {});
    const absl::Status own = std::exchange(p.status, absl::OkStatus());
    const db::FarmUnit unit = std::exchange(p.unit, {});
    p.step = {};
    if (work.undo && !IsEmpty(unit)) work.undo(farm_);
    work.done(farm_, own.ok() ? status : own, clock_.NowNs());
  }
  {
    const std::lock_guard lock(mutex_);
    const auto asked = std::stable_partition(queue_.begin(), queue_.end(),
                                             [](const Work& work) { return !work.asked; });
    std::move(asked, queue_.end(), std::back_inserter(refused));
    queue_.erase(asked, queue_.end());
  }
  for (const Work& work : refused) work.done(farm_, status, clock_.NowNs());
}

void FarmLoop::WaitOut(const absl::Status& status, std::vector<Pending>& pending) {
  std::unique_lock lock(mutex_);
  if (trouble_.empty()) {
    LogError("nothing can be written, waiting until it can: {}", StatusMessage(status));
    trouble_since_ns_ = clock_.NowNs();
  }
  trouble_ = StatusMessage(status);
  lock.unlock();
  RefuseAsked(CannotWrite(StatusMessage(status)), pending);
  lock.lock();
  WaitFor(changed_, lock, kRetryNs, [this] { return stopping_ || !patient_; });
  stopping_ |= !patient_;
}

bool FarmLoop::Commit(std::vector<Pending>& pending) {
  const int64_t first_ns = clock_.NowNs();
  std::optional<Pending> probe;
  for (bool again = false;; again = true) {
    std::vector<const db::FarmUnit*> units;
    std::vector<Pending*> owners;
    for (Pending& p : pending) {
      if (IsEmpty(p.unit)) continue;
      units.push_back(&p.unit);
      owners.push_back(&p);
    }
    if (units.empty() && !again) {
      // An idle farm too tells that its log is gone, to who asks it at once; there may be thousands
      // of other such turns a second.
      const bool asked = std::any_of(pending.begin(), pending.end(),
                                     [](const Pending& p) { return p.work.asked; });
      if (!asked && first_ns - looked_ns_ < kLookNs) return true;
      looked_ns_ = first_ns;
      const absl::Status there = store_.CheckInPlace();
      if (there.ok()) return true;
      WaitOut(there, pending);
      const std::lock_guard lock(mutex_);
      if (stopping_) return false;
      continue;
    }
    if (units.empty()) {
      // All who wanted something written were refused; there is trouble until something can be.
      if (!probe) probe.emplace().unit = ProbeOfSpace();
      units.push_back(&probe->unit);
      owners.push_back(&*probe);
    }
    KillPoint("honed.committing");
    const int64_t start_ns = clock_.NowNs();
    const auto committed = store_.Commit(units);
    if (committed.ok()) {
      for (size_t i = 0; i < owners.size(); ++i) owners[i]->status = (*committed)[i];
      const int64_t now_ns = clock_.NowNs();
      const int64_t took_ns = now_ns - start_ns;
      if (again) farm_.Excuse(now_ns - first_ns, now_ns);
      const std::lock_guard lock(mutex_);
      if (!trouble_.empty()) LogWarning("the log can be written again");
      trouble_.clear();
      times_.Add(took_ns, static_cast<int64_t>(units.size()));
      KillPoint("honed.committed");
      return true;
    }
    HONE_CHECK(committed.status().code() != absl::StatusCode::kDataLoss)
        << StatusMessage(committed.status());
    WaitOut(committed.status(), pending);
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
  }
}

void FarmLoop::Finish(std::vector<Pending>& pending) {
  bool changed = false;
  for (Pending& p : pending) {
    // What the Farm itself asked for cannot be refused: memory and store would differ.
    HONE_CHECK(p.status.ok() || p.work.done) << StatusMessage(p.status);
    if (!p.status.ok() && p.work.undo && !IsEmpty(p.unit)) {
      p.work.undo(farm_);
      p.step = {};
    }
    changed |= !IsEmpty(p.unit);
    for (const Outgoing& out : p.step.messages) {
      sink_.Send(out.stream, out.message);
      if (std::holds_alternative<proto::Grant>(out.message)) KillPoint("honed.granted");
      if (std::holds_alternative<proto::Acknowledgement>(out.message)) KillPoint("honed.answered");
    }
    for (const Closing& closing : p.step.closings) sink_.Close(closing.stream, closing.status);
    if (p.work.done) p.work.done(farm_, p.status, clock_.NowNs());
  }
  // Acknowledgements of what has just become durable.
  for (const Outgoing& out : farm_.TakeAnswers()) {
    sink_.Send(out.stream, out.message);
    if (std::holds_alternative<proto::Acknowledgement>(out.message)) KillPoint("honed.answered");
  }
  if (changed) sink_.Changed();
}

std::deque<FarmLoop::Work> FarmLoop::NextWorks() {
  std::deque<Work> works;
  while (!queue_.empty() && works.size() < kMostWorks) {
    const bool alone = queue_.front().undo != nullptr;
    if (alone && !works.empty()) break;
    works.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (alone) break;
  }
  return works;
}

void FarmLoop::Loop() {
  bool again = false;
  for (;;) {
    std::deque<Work> works;
    {
      std::unique_lock lock(mutex_);
      if (!again) {
        const int64_t wait_ns = next_tick_ns_ - clock_.NowNs();
        WaitFor(changed_, lock, wait_ns, [this] { return stopping_ || !queue_.empty(); });
      }
      if (stopping_) return;
      works = NextWorks();
    }
    again = !works.empty();
    PutOffCopies(works);
    std::vector<Pending> pending = Gather(std::move(works));
    if (!Commit(pending)) {
      for (Pending& p : pending) {
        if (p.work.done) {
          p.work.done(farm_, absl::CancelledError("honed is ending"), clock_.NowNs());
        }
      }
      return DropQueue();
    }
    Finish(pending);
  }
}

}  // namespace hone::server
