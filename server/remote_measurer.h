#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "measure/measurer.h"
#include "server/farm_loop.h"

namespace hone::server {

/// Numbers of comparisons; those of candidates are the Tuner's and far below.
inline constexpr int64_t kFirstComparison = int64_t{1} << 40;

/// The farm as a Measurer of one session. Thread-safe.
class RemoteMeasurer final : public measure::Measurer {
 public:
  /// What earlier starts of honed left of the session.
  struct Before {
    std::set<int64_t> comparisons;  ///< answered: their numbers are taken
    int64_t answers = 0;            ///< of candidates
  };
  /// `loop` must outlive it.
  RemoteMeasurer(FarmLoop& loop, const Hash128& session, std::string device_class, Before before);

  /// What is known of Workloads, by their texts; before anything is submitted.
  void SetHints(std::map<std::string, JobHints> hints) { hints_ = std::move(hints); }

  void Submit(measure::MeasureInput input) override;
  std::vector<measure::MeasureResult> Collect(int64_t timeout_ns) override;
  /// One lease on one device.
  std::vector<measure::ComparedTrace> Compare(const std::vector<measure::MeasureInput>& inputs,
                                              int rounds) override;
  /// Takes back what no worker has begun.
  void DropWaiting() override;
  int64_t num_in_flight() const override;
  int capacity() const override;

  /// Makes a batch durable with the end of every lease whose result was collected since the last
  /// call, and has those acknowledged.
  absl::Status Commit(const db::Batch& batch);
  /// The same without waiting; `done` is called once, on the loop or by who ends it.
  void BeginCommit(db::Batch batch, std::function<void(const absl::Status&)> done);

  /// A result of this session; called on the loop.
  void Deliver(int64_t attempt, const proto::WorkResult& result);
  /// Nothing will be delivered any more: who waits goes on with what there is.
  void Stop();

  /// Candidates of the session whose answers are durable, those of earlier starts included.
  int64_t answers() const { return answers_->load(); }

 private:
  int64_t ComparisonNumber(const proto::Job& job);
  JobHints HintsFor(const proto::Job& job) const;
  std::vector<int64_t> TakeUncommitted();
  /// A Workload's text, printed once for its many candidates.
  const std::string& TextOf(const std::shared_ptr<const ir::Workload>& workload);

  /// Notes that these are durable, before the Farm does.
  using Answers = std::shared_ptr<std::atomic<int64_t>>;
  static void Count(const Answers& answers, const std::vector<int64_t>& attempts);

  FarmLoop& loop_;
  const Hash128 session_;
  const std::string device_class_;
  const Answers answers_;  ///< the loop's too, which may outlive this object
  std::map<std::string, JobHints> hints_;
  std::mutex texts_mutex_;
  std::map<std::shared_ptr<const ir::Workload>, std::string> texts_;  // guarded by texts_mutex_
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<measure::MeasureResult> results_;  // guarded by mutex_, as all below
  std::map<int64_t, std::optional<proto::WorkResult>> comparisons_;
  std::set<int64_t> taken_;           ///< numbers of comparisons
  std::vector<int64_t> uncommitted_;  ///< attempts collected
  int64_t in_flight_ = 0;
  mutable int capacity_ = 0;
  mutable bool asking_ = false;
  mutable int64_t asked_ns_ = INT64_MIN / 2;
  bool stopped_ = false;
};

/// What a worker is asked for one input, or for several to compare; `workload`: its text.
proto::Job JobOf(std::string workload, const std::vector<measure::MeasureInput>& inputs,
                 proto::JobKind kind, int rounds);

}  // namespace hone::server
