#include <algorithm>
#include <utility>

#include "base/sha256.h"
#include "tests/sim/farm_simulation.h"

// The workers of a simulated farm: real desks, simulated runs, streams and crashes.
namespace hone::sim {
namespace {

using measure::Outcome;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kRunCost = 10 * kMs;
/// What honed gives a worker to begin: its limit, less the grace.
constexpr int64_t kStartBy = 7'000 * kMs;

/// What a builder makes of a trace; the default's is the empty one.
std::string CodeOf(const proto::Job& job, size_t position) {
  return "code " + HashBytes(position < job.traces.size() ? job.traces[position] : "").ToHex();
}

}  // namespace

void FarmSimulation::Break(SimWorker& w) {
  for (const auto& [stream, until_ns] : w.ghosts) Gone(stream);
  w.ghosts.clear();
  w.closed = false;
  if (!w.stream) return;
  Gone(*w.stream);
  w.stream.reset();
  w.to_honed.clear();
  w.to_worker.clear();
  w.desk->OnDisconnected();
  // Now and then for so long that honed gives its leases up, while it works on.
  w.dial_ns =
      now_ns_ +
      (random_.Chance(0.15) ? random_.Between(3'000, 6'000) : random_.Between(10, 400)) * kMs;
}

void FarmSimulation::Partition() {
  ++counts_.partitions;
  const int64_t until_ns = now_ns_ + random_.Between(50, 7'000) * kMs;
  for (SimWorker& w : workers_) {
    if (!random_.Chance(0.6) || Cut(w)) continue;
    w.cut_since_ns = now_ns_;
    w.cut_until_ns = until_ns;
  }
  for (SimClient& client : clients_) {
    if (random_.Chance(0.6)) client.cut_until_ns = until_ns;
  }
}

void FarmSimulation::StepLink(SimWorker& w) {
  constexpr int64_t kPatience = 1'500 * kMs;
  while (!w.ghosts.empty() && !Cut(w) && w.ghosts.front().second <= now_ns_) {
    Gone(w.ghosts.front().first);
    w.ghosts.erase(w.ghosts.begin());
  }
  if (!w.stream) return;
  const bool noticed = Cut(w) && now_ns_ - w.cut_since_ns > kPatience;
  if (!noticed && (Cut(w) || !w.closed)) return;
  // The worker gives the stream up; what was on its way is lost. honed hears of it when it can, or
  // has ended it itself.
  if (!w.closed) w.ghosts.emplace_back(*w.stream, now_ns_ + random_.Between(0, 4'000) * kMs);
  if (!w.closed) KeepLate(w);
  w.closed = false;
  w.stream.reset();
  w.to_honed.clear();
  w.to_worker.clear();
  w.desk->OnDisconnected();
  w.dial_ns = now_ns_ + random_.Between(10, 400) * kMs;
}

void FarmSimulation::Suspend(SimWorker& w) {
  if (now_ns_ < w.suspended_until_ns) return;
  ++counts_.suspensions;
  if (random_.Chance(0.3)) {
    // Its clock leaps ahead instead: it gives its leases up.
    w.clock_offset_ns += random_.Between(0, 10'000) * kMs;
    return;
  }
  const int64_t ns = random_.Between(100, 9'000) * kMs;
  w.suspended_until_ns = now_ns_ + ns;
  w.clock_offset_ns -= ns;
  for (Running& job : w.jobs) {
    job.start_ns += ns;
    job.end_ns += ns;
  }
}

void FarmSimulation::CrashWorker(SimWorker& w) {
  if (w.desk) {
    ++counts_.worker_crashes;
    Break(w);
  }
  w.jobs.clear();
  w.granted_ns.clear();
  w.instance = {random_.Next(), random_.Next()};
  // Another machine's clock has nothing to do with honed's.
  w.clock_offset_ns = random_.Between(-100'000, 100'000) * kMs;
  w.suspended_until_ns = 0;
  proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
  hello.instance = w.instance;
  hello.role = w.role;
  if (w.role == proto::WorkerRole::kRun) hello.builder_version.clear();
  hello.device = {
      .name = "cpu:0", .device_class = "class", .fingerprint = "f", .target = kTarget, .cores = 1};
  w.desk = std::make_unique<worker::LeaseDesk>(
      worker::DeskOptions{.ahead = 4, .shelf_bytes = 100, .chunk_bytes = 8}, hello);
  w.dial_ns = now_ns_ + random_.Between(10, 400) * kMs;
}

void FarmSimulation::Dial(SimWorker& w) {
  if (acts_.refused.contains(w.name)) {
    w.dial_ns = now_ns_ + 100 * kMs;
    return;
  }
  w.stream = next_stream_++;
  ++w.streams;
  w.desk->OnConnected();
}

void FarmSimulation::FinishBuild(SimWorker& w, const Running& job) {
  std::vector<worker::HeldArtifact> made;
  for (const int position : job.job.wanted) {
    auto bytes = std::make_shared<std::string>(CodeOf(job.job.job, static_cast<size_t>(position)));
    const proto::Artifact artifact{.sha256 = Sha256Hex(*bytes),
                                   .bytes = static_cast<int64_t>(bytes->size())};
    if (random_.Chance(0.01) && job.attempt != kPoison) {
      bytes->back() ^= 1;
      ++counts_.bad_artifacts;
    }
    made.push_back({artifact, std::move(bytes)});
  }
  w.desk->FinishBuild(job.number, std::move(made), kMs);
}

void FarmSimulation::CheckCode(const worker::DeskJob& job) {
  for (size_t i = 0; i < job.artifacts.size(); ++i) {
    const auto& bytes = job.artifacts[i].bytes;
    if (bytes == nullptr || *bytes != CodeOf(job.job, i)) wrong_ = "it ran another's code";
    ++counts_.artifacts_run;
  }
}

void FarmSimulation::Lie(SimWorker& w, const Running& job, proto::WorkResult& result) {
  const bool fast = random_.Chance(0.1);
  if (fast) {
    lies_[job.attempt].insert(w.name);
    result.samples_ns = {kLieNs};
  } else if (random_.Chance(0.05)) {
    result = {.outcome = Outcome::kRunCrashed, .message = "it fell over", .run_ns = kRunCost};
  }
  if (job.job.job.kind != proto::JobKind::kCompare || result.outcome != Outcome::kOk) return;
  // Now and then one more than was asked for.
  result.compared.assign(random_.Chance(0.1) ? 3 : 2, {.samples_ns = result.samples_ns});
  result.samples_ns.clear();
}

void FarmSimulation::UndrainAll() {
  for (const SimWorker& w : workers_) {
    // Most need it not; some have not been seen since the restart.
    (void)farm_->SetDevice(w.name, "cpu:0", server::DeviceTrigger::kUndrain, "", FarmNs());
  }
}

bool FarmSimulation::FinishJob(SimWorker& w) {
  const Running job = w.jobs.front();
  const bool build = job.job.kind == proto::LeaseKind::kBuild;
  if (!build && job.attempt == kPoison) {
    CrashWorker(w);
    return false;
  }
  proto::WorkResult result{.outcome = Outcome::kOk};
  result.samples_ns = {random_.Between(1000, 1200)};
  result.run_ns = kRunCost;
  const bool poison = job.attempt == kPoison;  // which every machine builds well
  if (random_.Chance(0.08) && !poison) {
    result = {.outcome = Outcome::kWorkerLost, .message = "no builder"};
  } else if (random_.Chance(0.03) && !poison) {
    result = {.outcome = Outcome::kBuildFailed, .message = "no", .run_ns = kRunCost};
  }
  if (options_.doubts && !build && !poison && result.outcome == Outcome::kOk) Lie(w, job, result);
  if (build && result.outcome == Outcome::kOk) {
    FinishBuild(w, job);
    w.jobs.erase(w.jobs.begin());
    return true;
  }
  w.said.push_back(result);
  w.said.back().token = job.token;
  w.desk->Finish(job.number, std::move(result));
  w.jobs.erase(w.jobs.begin());
  return true;
}

void FarmSimulation::TakeJobs(SimWorker& w) {
  while (const auto job = w.desk->TakeJob()) {
    if (job->kind == proto::LeaseKind::kRun) CheckCode(*job);
    const int64_t begin_ns = (w.jobs.empty() ? now_ns_ : w.jobs.back().end_ns) + Delay();
    w.jobs.push_back({.number = job->number,
                      .token = job->token,
                      .attempt = asked_.at(job->token).second,
                      .start_ns = begin_ns,
                      .end_ns = begin_ns + random_.Between(5, 120) * kMs,
                      .job = *job});
  }
}

bool FarmSimulation::WorkOn(SimWorker& w) {
  while (!w.jobs.empty()) {
    Running& job = w.jobs.front();
    if (!job.started && now_ns_ >= job.start_ns && job.job.kind != proto::LeaseKind::kBuild) {
      job.started = true;
      ran_.insert(job.token);
      w.desk->Start(job.number, ClockOf(w));
    }
    if (now_ns_ < job.end_ns) break;
    if (!FinishJob(w)) return false;
  }
  return true;
}

void FarmSimulation::StepWorker(SimWorker& w) {
  if (now_ns_ < w.suspended_until_ns) return;
  if (!w.stream && now_ns_ >= w.dial_ns && !Cut(w)) Dial(w);
  while (w.stream && !Cut(w) && !w.to_worker.empty() && w.to_worker.front().first <= now_ns_) {
    const auto* grant = std::get_if<proto::Grant>(&w.to_worker.front().second);
    if (grant != nullptr) w.granted_ns.try_emplace(grant->token, ClockOf(w));
    w.desk->OnServer(w.to_worker.front().second, ClockOf(w));
    w.to_worker.pop_front();
  }
  for (const auto& a : w.desk->TakeAcknowledged()) {
    if (a.verdict != proto::Verdict::kAccepted) continue;
    if (!accepted_.try_emplace(a.token, a.digest).second) wrong_ = "one result acknowledged twice";
  }
  TakeJobs(w);
  w.desk->Tick(ClockOf(w));
  for (const int64_t number : w.desk->TakeCancelled()) {
    std::erase_if(w.jobs, [&](const Running& job) { return job.number == number; });
  }
  if (!WorkOn(w)) return;
  while (w.stream) {
    auto message = w.desk->TakeMessage();
    if (!message) break;
    // None drains or loses its device: what goes back had all the time that a lease has.
    const auto* returned = std::get_if<proto::Returned>(&*message);
    if (returned != nullptr && returned->reason == "its time is over" &&
        ClockOf(w) - w.granted_ns.at(returned->token) < kStartBy) {
      wrong_ = "a worker gave a lease up that had time left";
    }
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
