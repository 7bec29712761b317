#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/core/thread_name.h"
#include "base/core/timed_wait.h"
#include "base/status.h"
#include "search/tuning_session.h"

// A member of a farm's search: results are made durable as they come, on the session's thread,
// while another one proposes and trains, which may take seconds.
namespace hone::search {
namespace {

/// A new round of proposals is worth it when so much of what the farm may hold is free.
constexpr int kRoundsInFlight = 16;
constexpr int64_t kRoomWaitNs = 50'000'000;

}  // namespace

void TuningSession::TellFound(db::Batch& batch) {
  if (!shared()) return;
  const std::lock_guard flight(flight_mutex_);
  for (size_t k = 0; k < places_.size(); ++k) {
    if (verdicts_[k].compared) continue;  // nothing is more certain
    const TaskSearch& s = tuner_->search(places_[k]);
    Told& told = told_[k];
    // The session's own results are told before the Tuner has them.
    const bool other_default = s.default_ns() > 0 && s.default_ns() != told.default_ns;
    const bool better = s.best_ns() > 0 && (told.best_ns == 0 || s.best_ns() < told.best_ns);
    if (!other_default && !better) continue;
    told = {s.default_ns(), s.best_ns()};
    batch.events.push_back(
        MakeEvent(FoundEvent{static_cast<int>(k), told.default_ns, told.best_ns}));
  }
}

void TuningSession::BeginResults(Answers answers) {
  // The log's part and the Tuner's go different ways.
  Begin(options_.begin_results, std::move(answers.batch),
        [of = std::move(answers.of)](Tuner& tuner) {
          Answers{{}, of}.ApplyTo(tuner);
        });
}

void TuningSession::BeginModel(db::Batch batch,
                               std::shared_ptr<const costmodel::XgboostModel> model) {
  Begin(options_.begin_append, std::move(batch),
        [model = std::move(model)](Tuner& tuner) { tuner.SetModel(model); });
}

void TuningSession::Begin(const std::function<void(db::Batch, TunerQueue::Done)>& append,
                          db::Batch batch, TunerQueue::Apply apply) {
  begun_->Begin();
  shared_->queue.Post(
      [&](TunerQueue::Done done) {
        append(std::move(batch), [done, begun = begun_](const absl::Status& status) {
          done(status);
          begun->Settle(status);
        });
      },
      std::move(apply));
}

void TuningSession::WaitForRoom(bool more) {
  std::unique_lock flight(flight_mutex_);
  if (!more) {
    // Until something comes back.
    WaitFor(flight_changed_, flight, kRoomWaitNs);
    return;
  }
  WaitFor(flight_changed_, flight, kRoomWaitNs, [this] {
    const int most = MostInFlight();
    const auto under_way = static_cast<int>(in_flight_.size());
    return under_way + std::max(1, most / kRoundsInFlight) <= most;
  });
}

absl::Status TuningSession::Think() {
  while (!OutOfBudget() && begun_->status().ok()) {
    // Results that come while the Tuner is asked may be what it lacked.
    const bool idle = NothingUnderWay();
    HONE_ASSIGN_OR_RETURN(const bool more, SubmitRound());
    if (idle && !more) {
      if (!OthersAtWork()) {
        reason_ = dry_;
        break;
      }
      clock_.SleepNs(kOthersNs);
      continue;
    }
    HONE_RETURN_IF_ERROR(Train());
    WaitForRoom(more);
  }
  return absl::OkStatus();
}

absl::Status TuningSession::SearchBeside(
    const std::function<void(const TuningSession&)>& progress) {
  std::thread thinker([this] {
    NameThisThread("tuner");
    LowerThisThread();
    const absl::Status status = Think();
    if (!status.ok()) begun_->Fail(status);
    const std::lock_guard flight(flight_mutex_);
    thinking_over_ = true;
    flight_changed_.notify_all();
  });
  const auto take = [&]() -> absl::Status {
    std::vector<measure::MeasureResult> results = measurer_.Collect(kCollectNs);
    if (results.empty() && measurer_.num_in_flight() == 0) HONE_RETURN_IF_ERROR(GiveUpLost());
    HONE_RETURN_IF_ERROR(TakeResults(results));
    if (!results.empty() && progress) progress(*this);
    return absl::OkStatus();
  };
  for (;;) {
    {
      std::unique_lock flight(flight_mutex_);
      flight_changed_.notify_all();  // there may be room
      // An interrupted session takes no more results: a stopped Measurer answers at once.
      if (Interrupted()) flight_changed_.wait(flight, [this] { return thinking_over_; });
      if (in_flight_.empty() && !thinking_over_) {
        WaitFor(flight_changed_, flight, kCollectNs);
      }
      if (thinking_over_) break;
    }
    if (const absl::Status taken = take(); !taken.ok()) begun_->Fail(taken);
    if (!begun_->status().ok()) clock_.SleepNs(kOthersNs);  // the other thread is about to end
  }
  thinker.join();
  return begun_->status();
}

}  // namespace hone::search
