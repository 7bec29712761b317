#include "server/remote_measurer.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "base/core/timed_wait.h"
#include "ir/text.h"

namespace hone::server {
namespace {

/// It looks at every worker.
constexpr int64_t kAskEveryNs = 200'000'000;

}  // namespace

proto::Job JobOf(std::string workload, const std::vector<measure::MeasureInput>& inputs,
                 proto::JobKind kind, int rounds) {
  HONE_CHECK(!inputs.empty());
  const measure::MeasureInput& first = inputs.front();
  proto::Job job{.kind = kind,
                 .workload = std::move(workload),
                 .target = first.target,
                 .accuracy = first.accuracy,
                 .incumbent_ns = first.incumbent_ns,
                 .seed = first.seed,
                 .rounds = rounds,
                 .part_ns = first.part_ns,
                 .part_ratio = first.part_ratio,
                 .both_ways = first.both_ways};
  for (const measure::MeasureInput& input : inputs) job.traces.push_back(input.trace);
  return job;
}

RemoteMeasurer::RemoteMeasurer(FarmLoop& loop, const Hash128& session, std::string device_class,
                               Before before)
    : loop_(loop),
      session_(session),
      device_class_(std::move(device_class)),
      answers_(std::make_shared<std::atomic<int64_t>>(before.answers)),
      taken_(std::move(before.comparisons)) {}

void RemoteMeasurer::Count(const Answers& answers, const std::vector<int64_t>& attempts) {
  *answers += std::ranges::count_if(attempts, [](int64_t a) { return a < kFirstComparison; });
}

JobHints RemoteMeasurer::HintsFor(const proto::Job& job) const {
  const auto known = hints_.find(job.workload);
  return known == hints_.end() ? JobHints{} : known->second;
}

void RemoteMeasurer::Submit(measure::MeasureInput input) {
  {
    const std::lock_guard lock(mutex_);
    ++in_flight_;
  }
  const int64_t attempt = input.id;
  proto::Job job = JobOf(TextOf(input.workload), {input}, proto::JobKind::kScreen, 0);
  const JobHints hints = HintsFor(job);
  loop_.Post(
      [session = session_, attempt, hints, job = std::move(job)](Farm& farm, int64_t now_ns) {
        farm.Submit(session, attempt, job, hints, now_ns);
      });
}

void RemoteMeasurer::Deliver(int64_t attempt, const proto::WorkResult& result) {
  {
    const std::lock_guard lock(mutex_);
    if (attempt >= kFirstComparison) {
      comparisons_[attempt] = result;
    } else {
      measure::MeasureResult& r = results_.emplace_back();
      r.id = attempt;
      r.outcome = result.outcome;
      r.message = result.message;
      r.samples_ns = result.samples_ns;
      r.hopeless = result.hopeless;
      r.noisy = result.noisy;
      r.part_ns = result.part_ns;
      r.part = result.part;
      r.build_ms = static_cast<double>(result.build_ns) * 1e-6;
      r.run_ms = static_cast<double>(result.run_ns) * 1e-6;
      r.device = device_class_;
    }
  }
  changed_.notify_all();
}

std::vector<measure::MeasureResult> RemoteMeasurer::Collect(int64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return stopped_ || !results_.empty() || in_flight_ == 0; };
  if (timeout_ns < 0) {
    changed_.wait(lock, ready);
  } else if (timeout_ns > 0) {
    WaitFor(changed_, lock, timeout_ns, ready);
  }
  if (stopped_) return {};
  for (const measure::MeasureResult& result : results_) uncommitted_.push_back(result.id);
  in_flight_ -= static_cast<int64_t>(results_.size());
  return std::exchange(results_, {});
}

int64_t RemoteMeasurer::ComparisonNumber(const proto::Job& job) {
  std::string text = job.workload;
  for (const std::string& trace : job.traces) text += "\n--\n" + trace;
  // The same comparison asked again after a restart has the same number, so that a lease of it
  // that is still open serves.
  constexpr int64_t kMask = (int64_t{1} << 52) - 1;
  int64_t number = kFirstComparison + (static_cast<int64_t>(HashBytes(text).low) & kMask);
  while (!taken_.insert(number).second) ++number;
  return number;
}

std::vector<measure::ComparedTrace> RemoteMeasurer::Compare(
    const std::vector<measure::MeasureInput>& inputs, int rounds) {
  proto::Job job = JobOf(TextOf(inputs.front().workload), inputs, proto::JobKind::kCompare, rounds);
  std::unique_lock lock(mutex_);
  const int64_t number = ComparisonNumber(job);
  comparisons_[number];
  lock.unlock();
  const JobHints hints = HintsFor(job);
  loop_.Post([session = session_, number, hints, job = std::move(job)](Farm& farm, int64_t now_ns) {
    farm.Submit(session, number, job, hints, now_ns);
  });
  lock.lock();
  changed_.wait(lock, [&] { return stopped_ || comparisons_[number].has_value(); });
  const std::optional<proto::WorkResult> result = std::move(comparisons_[number]);
  comparisons_.erase(number);
  std::vector<measure::ComparedTrace> compared(inputs.size());
  for (measure::ComparedTrace& c : compared) c.error.outcome = measure::Outcome::kWorkerLost;
  if (!result || stopped_) return compared;
  uncommitted_.push_back(number);
  for (size_t i = 0; i < compared.size(); ++i) {
    if (result->compared.size() != compared.size()) {
      compared[i].error = {result->outcome, result->message};
      continue;
    }
    compared[i].error = {result->compared[i].outcome, result->compared[i].message};
    compared[i].samples_ns = result->compared[i].samples_ns;
    compared[i].noisy = result->noisy;
  }
  return compared;
}

void RemoteMeasurer::DropWaiting() {
  int64_t dropped = 0;
  const absl::Status done =
      loop_.Run({.prepare = [&](Farm& farm, db::FarmStore&, db::FarmUnit&, int64_t now_ns) {
        dropped = farm.DropWaiting(session_, kFirstComparison, now_ns);
        return absl::OkStatus();
      }});
  if (!done.ok()) return;  // honed is ending
  const std::lock_guard lock(mutex_);
  in_flight_ -= dropped;
}

int64_t RemoteMeasurer::num_in_flight() const {
  const std::lock_guard lock(mutex_);
  return stopped_ ? 0 : in_flight_;
}

int RemoteMeasurer::capacity() const {
  bool ask = false;
  int capacity = 0;
  {
    const int64_t now_ns = loop_.clock().NowNs();
    const std::lock_guard lock(mutex_);
    ask = !asking_ && now_ns >= asked_ns_ + kAskEveryNs;
    if (ask) {
      asking_ = true;
      asked_ns_ = now_ns;
    }
    capacity = capacity_;
  }
  // The answer serves the next call: nobody waits for the loop here.
  if (ask) {
    loop_.Post([this](Farm& farm, int64_t) {
      const int now = farm.CapacityFor(session_);
      const std::lock_guard lock(mutex_);
      capacity_ = now;
      asking_ = false;
    });
  }
  constexpr int kLeast = 8;
  return std::max(capacity, kLeast);
}

std::vector<int64_t> RemoteMeasurer::TakeUncommitted() {
  const std::lock_guard lock(mutex_);
  return std::exchange(uncommitted_, {});
}

const std::string& RemoteMeasurer::TextOf(const std::shared_ptr<const ir::Workload>& workload) {
  const std::lock_guard lock(texts_mutex_);
  const auto [text, fresh] = texts_.try_emplace(workload);
  if (fresh) text->second = ir::ToText(*workload);
  return text->second;
}

void RemoteMeasurer::BeginCommit(db::Batch batch, std::function<void(const absl::Status&)> done) {
  const auto attempts = std::make_shared<const std::vector<int64_t>>(TakeUncommitted());
  // The loop may outlive this object.
  loop_.Post(
      {.prepare =
           [session = session_, attempts, batch = std::make_shared<db::Batch>(std::move(batch))](
               Farm& farm, db::FarmStore&, db::FarmUnit& unit, int64_t) {
             unit.facts = std::move(*batch);
             unit.changes = farm.EndsOf(session, *attempts);
             return absl::OkStatus();
           },
       .done =
           [session = session_, attempts, answers = answers_, done = std::move(done)](
               Farm& farm, const absl::Status& status, int64_t now_ns) {
             if (status.ok()) {
               Count(answers, *attempts);
               farm.OnCommitted(session, *attempts, now_ns);
             }
             done(status);
           }});
}

absl::Status RemoteMeasurer::Commit(const db::Batch& batch) {
  const std::vector<int64_t> attempts = TakeUncommitted();
  return loop_.Run({.prepare =
                        [&](Farm& farm, db::FarmStore&, db::FarmUnit& unit, int64_t) {
                          unit.facts = batch;
                          unit.changes = farm.EndsOf(session_, attempts);
                          return absl::OkStatus();
                        },
                    .done =
                        [&](Farm& farm, const absl::Status& status, int64_t now_ns) {
                          if (!status.ok()) return;
                          Count(answers_, attempts);
                          farm.OnCommitted(session_, attempts, now_ns);
                        }});
}

void RemoteMeasurer::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

}  // namespace hone::server
