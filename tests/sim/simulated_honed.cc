#include <utility>

#include "proto/convert.h"
#include "tests/sim/farm_simulation.h"

// What honed hears in a simulated farm, what it does in a turn, and when it stands still.
namespace hone::sim {
namespace {

using measure::Outcome;

constexpr int64_t kMs = 1'000'000;

}  // namespace

void FarmSimulation::Hear(SimWorker& w, proto::WorkerMessage message) {
  if (acts_.refused.contains(w.name)) return Break(w);
  const bool later_stream = w.streams > 1;
  if (const auto* hello = std::get_if<proto::Hello>(&message)) {
    return farm_->OnHello(*w.stream, w.name, *hello, FarmNs());
  }
  if (options_.mistake == Mistake::kLostCredit && later_stream &&
      std::holds_alternative<proto::WorkerCredit>(message)) {
    std::get<proto::WorkerCredit>(message).leases -= 40;
  }
  const auto* result = std::get_if<proto::WorkResult>(&message);
  if (result != nullptr && options_.mistake == Mistake::kDuplicateByContent) {
    proto::WorkResult content = *result;
    content.token = {};
    if (result->outcome == Outcome::kOk && !contents_.insert(proto::ResultDigest(content)).second) {
      w.to_worker.emplace_back(now_ns_,
                               proto::Acknowledgement{result->token, proto::Verdict::kAccepted});
      return;
    }
  }
  if (result != nullptr && options_.mistake == Mistake::kAcceptAnyToken) {
    const auto lease = store_->FindLease(result->token);
    const auto asked = asked_.find(result->token);
    if (lease.ok() && *lease && (*lease)->state > db::LeaseState::kDone && asked != asked_.end()) {
      forged_.insert(asked->second.second);
      TakeResult({asked->second.first, asked->second.second, *result});
      w.to_worker.emplace_back(now_ns_,
                               proto::Acknowledgement{result->token, proto::Verdict::kAccepted});
      return;
    }
  }
  if (result != nullptr && asked_.contains(result->token)) {
    const auto& [session, attempt] = asked_.at(result->token);
    for (const SimSession& s : sessions_) {
      counts_.parked += s.id == session && !s.to_ask.empty() ? 1 : 0;
    }
  }
  farm_->OnMessage(*w.stream, message, FarmNs());
}

void FarmSimulation::StepHoned() {
  Resume();
  // On a clock that jumps it would excuse what the jump does.
  if (options_.mistake != Mistake::kWallClockLeases) farm_->OnTurn(FarmNs());
  for (SimWorker& w : workers_) {
    while (w.stream && !Cut(w) && !w.to_honed.empty() && w.to_honed.front().first <= now_ns_) {
      proto::WorkerMessage message = std::move(w.to_honed.front().second);
      w.to_honed.pop_front();
      Hear(w, std::move(message));
    }
  }
  HearLate();
  StepOperator();
  for (size_t i = 0; i < clients_.size(); ++i) StepClient(i);
  if (!wrong_.empty()) return;
  const size_t first = random_.Below(sessions_.size());
  for (size_t i = 0; i < sessions_.size(); ++i) Drive(sessions_[(first + i) % sessions_.size()]);
  if (now_ns_ >= next_tick_ns_) {
    next_tick_ns_ = now_ns_ + 100 * kMs;
    farm_->Tick(FarmNs());
    if (options_.doubts && random_.Chance(0.1)) UndrainAll();
  }
  Gather({});
}

// As SIGSTOP, a suspended machine or a debugger do. honed does nothing and hears nothing; workers
// work on, and what they say waits in sockets.
void FarmSimulation::MayPause() {
  if (!options_.pauses || Paused() || blocked_since_ns_ >= 0 || !random_.Chance(0.0015)) return;
  // What is over by now is over whatever the pause excuses.
  farm_->OnTurn(FarmNs());
  farm_->Tick(FarmNs());
  Gather({});
  paused_since_ns_ = now_ns_;
  paused_until_ns_ = now_ns_ + random_.Between(500, 12'000) * kMs;
  ++counts_.pauses;
}

void FarmSimulation::Resume() {
  if (paused_since_ns_ < 0 || Paused()) return;
  const server::FarmCounters before = farm_->counters();
  if (options_.mistake != Mistake::kForgetPause) farm_->OnTurn(FarmNs());
  // Now and then a turn comes before anything that was said meanwhile is read.
  if (random_.Chance(0.5)) {
    farm_->Tick(FarmNs());
    const server::FarmCounters& after = farm_->counters();
    if (after.lost != before.lost || after.expired != before.expired) {
      wrong_ = "a pause of honed was taken for silence of a worker's";
    }
  }
  EndPause();
  for (const server::StreamId stream : gone_) farm_->OnGone(stream, FarmNs());
  gone_.clear();
}

void FarmSimulation::EndPause() {
  if (paused_since_ns_ < 0) return;
  blocked_ns_ += now_ns_ - paused_since_ns_;
  unblocked_ns_ = now_ns_;
  paused_since_ns_ = -1;
  paused_until_ns_ = 0;
}

void FarmSimulation::Gone(server::StreamId stream) {
  if (paused_since_ns_ >= 0) {
    gone_.push_back(stream);
  } else {
    farm_->OnGone(stream, FarmNs());
  }
}

}  // namespace hone::sim
