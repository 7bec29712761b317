#include <algorithm>
#include <utility>

#include "tests/sim/farm_simulation.h"

// The workers of a simulated farm: real desks, simulated runs, streams and crashes.
namespace hone::sim {
namespace {

using measure::Outcome;

constexpr int64_t kMs = 1'000'000;
constexpr char kTarget[] = "cpu:avx2,threads=1";
constexpr int64_t kRunCost = 10 * kMs;

}  // namespace

void FarmSimulation::Break(SimWorker& w) {
  if (!w.stream) return;
  farm_->OnGone(*w.stream, FarmNs());
  w.stream.reset();
  w.to_honed.clear();
  w.to_worker.clear();
  w.desk->OnDisconnected();
  // Now and then for so long that honed gives its leases up, while it works on.
  w.dial_ns =
      now_ns_ +
      (random_.Chance(0.15) ? random_.Between(3'000, 6'000) : random_.Between(10, 400)) * kMs;
}

void FarmSimulation::CrashWorker(SimWorker& w) {
  if (w.desk) {
    ++counts_.worker_crashes;
    for (const int64_t attempt : w.begun) ++lost_with_[attempt];
    Break(w);
  }
  w.jobs.clear();
  w.begun.clear();
  w.instance = {random_.Next(), random_.Next()};
  proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
  hello.instance = w.instance;
  hello.device = {
      .name = "cpu:0", .device_class = "class", .fingerprint = "f", .target = kTarget, .cores = 1};
  w.desk = std::make_unique<worker::LeaseDesk>(worker::DeskOptions{.ahead = 4}, hello);
  w.dial_ns = now_ns_ + random_.Between(10, 400) * kMs;
}

void FarmSimulation::Dial(SimWorker& w) {
  w.stream = next_stream_++;
  ++w.streams;
  w.desk->OnConnected();
}

bool FarmSimulation::FinishJob(SimWorker& w) {
  const Running job = w.jobs.front();
  if (job.attempt == kPoison) {
    CrashWorker(w);
    return false;
  }
  proto::WorkResult result{.outcome = Outcome::kOk};
  result.samples_ns = {random_.Between(1000, 1200)};
  result.run_ns = kRunCost;
  if (random_.Chance(0.08)) {
    result = {.outcome = Outcome::kWorkerLost, .message = "no builder"};
  } else if (random_.Chance(0.03)) {
    result = {.outcome = Outcome::kBuildFailed, .message = "no", .run_ns = kRunCost};
  }
  w.said.push_back(result);
  w.said.back().token = job.token;
  w.desk->Finish(job.number, std::move(result));
  w.jobs.erase(w.jobs.begin());
  return true;
}

void FarmSimulation::StepWorker(SimWorker& w) {
  if (!w.stream && now_ns_ >= w.dial_ns) Dial(w);
  while (w.stream && !w.to_worker.empty() && w.to_worker.front().first <= now_ns_) {
    w.desk->OnServer(w.to_worker.front().second, now_ns_);
    w.to_worker.pop_front();
  }
  for (const auto& a : w.desk->TakeAcknowledged()) {
    if (a.verdict != proto::Verdict::kAccepted) continue;
    if (!accepted_.try_emplace(a.token, a.digest).second) wrong_ = "one result acknowledged twice";
  }
  while (const auto job = w.desk->TakeJob()) {
    const int64_t begin_ns = (w.jobs.empty() ? now_ns_ : w.jobs.back().end_ns) + Delay();
    w.jobs.push_back({.number = job->number,
                      .token = job->token,
                      .attempt = asked_.at(job->token).second,
                      .start_ns = begin_ns,
                      .end_ns = begin_ns + random_.Between(5, 120) * kMs});
  }
  w.desk->Tick(now_ns_);
  while (!w.jobs.empty()) {
    Running& job = w.jobs.front();
    if (!job.started && now_ns_ >= job.start_ns) {
      job.started = true;
      w.begun.insert(job.attempt);
      w.desk->Start(job.number, now_ns_);
    }
    if (now_ns_ < job.end_ns) break;
    if (!FinishJob(w)) return;
  }
  while (w.stream) {
    auto message = w.desk->TakeMessage();
    if (!message) break;
    const int64_t last_ns = w.to_honed.empty() ? now_ns_ : w.to_honed.back().first;
    w.to_honed.emplace_back(std::max(last_ns, now_ns_ + Delay()), *std::move(message));
    // The network, or a worker that is not sure, says it twice.
    if (random_.Chance(0.02) && !std::holds_alternative<proto::Hello>(w.to_honed.back().second)) {
      w.to_honed.push_back(w.to_honed.back());
    }
  }
  if (!w.stream) return;
  const int64_t at_ns = w.to_honed.empty() ? now_ns_ : w.to_honed.back().first;
  if (random_.Chance(0.02)) w.to_honed.emplace_back(at_ns, w.desk->MakeHeartbeat());
  // What it said long ago, whatever became of that lease.
  if (random_.Chance(0.03) && !w.said.empty()) {
    w.to_honed.emplace_back(at_ns, w.said[random_.Below(w.said.size())]);
  }
}

}  // namespace hone::sim
