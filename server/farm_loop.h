#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"

#include "base/core/clock.h"
#include "db/farm_store.h"
#include "server/farm.h"

namespace hone::server {

/// Where a farm's messages go. Called on the loop's thread; must not block.
class FarmSink {
 public:
  virtual ~FarmSink() = default;
  virtual void Send(StreamId stream, const proto::ServerMessage& message) = 0;
  virtual void Close(StreamId stream, const absl::Status& status) = 0;
  virtual void Deliver(const Delivery& delivery) = 0;
  /// Something became durable: watchers may look.
  virtual void Changed() = 0;
};

/// How long commits took, for metrics.
struct CommitTimes {
  /// Upper ends, in nanoseconds, of all buckets but the last, which has none.
  static constexpr std::array<int64_t, 12> kEndsNs = {
      250'000,    500'000,    1'000'000,   2'500'000,   5'000'000,     10'000'000,
      25'000'000, 50'000'000, 100'000'000, 250'000'000, 1'000'000'000, 5'000'000'000};

  int64_t commits = 0, units = 0, total_ns = 0, worst_ns = 0;
  std::array<int64_t, kEndsNs.size() + 1> buckets{};  ///< commits by duration

  void Add(int64_t took_ns, int64_t num_units);
  /// The end of the bucket in which the quantile lies, at most the worst; 0 without commits.
  int64_t QuantileNs(double share) const;
};

/// The one thread that owns a Farm and writes the log. It takes what was posted, lets the Farm act,
/// makes everything durable in one group commit, and only then sends what came of it. A log that
/// cannot be written (a full disk, a file that was moved away) holds everything back until it can
/// be.
class FarmLoop {
 public:
  /// All must outlive it.
  FarmLoop(Farm& farm, db::FarmStore& store, FarmSink& sink, const MonotonicClock& clock);
  ~FarmLoop();
  void Start();
  /// Ends the thread; what is posted but not begun is dropped, and waiting callers get kCancelled.
  void Stop();
  /// Before what waits for the loop is stopped: from now on a log that cannot be written ends the
  /// loop, as Stop does, instead of holding everything back.
  void StopWhenStuck();

  using Event = std::function<void(Farm& farm, int64_t now_ns)>;
  /// Runs `event` on the loop; what it makes the Farm say goes out after the commit. Any thread.
  void Post(Event event);

  /// A change to be made durable with an answer after it.
  struct Work {
    /// On the loop, before the commit; an error ends the work without one. May be empty.
    std::function<absl::Status(Farm& farm, db::FarmStore& store, db::FarmUnit& unit,
                               int64_t now_ns)>
        prepare;
    /// On the loop, after the commit, with its status or that of `prepare`. May be empty.
    std::function<void(Farm& farm, const absl::Status& status, int64_t now_ns)> done;
    /// Takes back what `prepare` did to the Farm, when the log refused it or nothing can be
    /// written; before `done`. An asked work that changes the Farm has one, and is committed by
    /// itself, so that nothing has been built on what it takes back. May be empty.
    std::function<void(Farm& farm)> undo = {};
    bool asked = false;  ///< by Ask
    /// Not empty: of works with the same one, the next begins once the last is durable or refused,
    /// so that it sees what became of it.
    std::string request = {};
  };
  void Post(Work work);
  /// Posts, and waits for `done`. Not on the loop's thread. kCancelled: the loop stopped.
  absl::Status Run(Work work);
  /// The same where somebody waits at the other end of a call: kResourceExhausted as soon as
  /// nothing can be written. It has had no effect then, and is not tried again.
  absl::Status Ask(Work work);

  /// kResourceExhausted, in words for who asks: nothing can be written just now.
  absl::Status CheckWritable() const;
  /// Empty, or why nothing can be written just now.
  std::string trouble() const;
  int64_t trouble_ns() const;  ///< for how long; 0: it can be written
  CommitTimes commit_times() const;
  const MonotonicClock& clock() const { return clock_; }

 private:
  struct Pending {
    Work work;
    db::FarmUnit unit;
    FarmStep step;
    absl::Status status;
  };

  void Loop();
  /// The next works for one commit, oldest first; under mutex_.
  std::deque<Work> NextWorks();
  std::vector<Pending> Gather(std::deque<Work> works);
  /// Takes out what has a request that stands before it; that comes first next time.
  void PutOffCopies(std::deque<Work>& works);
  bool Commit(std::vector<Pending>& pending);
  void Finish(std::vector<Pending>& pending);
  void WaitOut(const absl::Status& status, std::vector<Pending>& pending);
  /// Answers, with that status, who asked; what they wanted to change is dropped.
  void RefuseAsked(const absl::Status& status, std::vector<Pending>& pending);
  /// What was posted and not begun gets kCancelled.
  void DropQueue();

  Farm& farm_;
  db::FarmStore& store_;
  FarmSink& sink_;
  const MonotonicClock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;  // guarded by mutex_, as all below
  std::string trouble_;
  int64_t trouble_since_ns_ = 0;
  CommitTimes times_;
  bool stopping_ = false;
  bool patient_ = true;  ///< with a log that cannot be written
  bool started_ = false;
  int64_t next_tick_ns_ = 0;  // the loop's alone
  int64_t looked_ns_ = 0;     // its alone too: when an idle turn last looked for the log
  std::thread thread_;
};

}  // namespace hone::server
