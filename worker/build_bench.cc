#include "worker/build_bench.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "base/sha256.h"
#include "base/status.h"
#include "measure/built_artifact.h"
#include "proto/field_check.h"
#include "proto/limits.h"

namespace hone::worker {
namespace {

constexpr char kDefaultFailed[] = "the default schedule, which candidates are compared with: ";

HeldArtifact Failed(measure::Outcome outcome, const std::string& message) {
  return {.artifact = {.outcome = outcome, .message = proto::Cut(message, proto::kMaxTextBytes)},
          .bytes = nullptr};
}

}  // namespace

BuildBench::BuildBench(measure::BuilderOptions options, Hook hook, const MonotonicClock& clock,
                       Events events)
    : processes_(options.processes),
      hook_(std::move(hook)),
      events_(std::move(events)),
      client_(std::move(options), clock),
      builder_(client_, clock, measure::BuildFor::kAny) {
  for (int i = 0; i < processes_; ++i) threads_.emplace_back([this] { Loop(); });
}

BuildBench::~BuildBench() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BuildBench::Add(DeskJob job) {
  absl::Status unreadable;
  const int64_t number = job.number;
  {
    const std::lock_guard lock(mutex_);
    auto workload = workloads_.Of(job.job.workload);
    if (workload.ok()) {
      auto work = std::make_shared<Work>();
      work->workload = *std::move(workload);
      work->made.resize(job.wanted.size());
      work->left = job.wanted.size();
      work->job = std::move(job);
      for (size_t i = 0; i < work->left; ++i) waiting_.emplace_back(work, i);
      works_[number] = std::move(work);
    }
    unreadable = workload.status();
  }
  changed_.notify_all();
  if (unreadable.ok()) return;
  events_.finished(number,
                   {.outcome = measure::Outcome::kIllegal,
                    .message = proto::Cut(StatusMessage(unreadable), proto::kMaxTextBytes)});
}

void BuildBench::Cancel(int64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = works_.find(number);
  if (found == works_.end()) return;
  found->second->cancelled = true;
  found->second->stop.Pull();
  std::erase_if(waiting_, [&](const auto& unit) { return unit.first == found->second; });
  works_.erase(found);
}

HeldArtifact BuildBench::Build(Work& work, size_t wanted, int64_t* took_ns) {
  const proto::Job& job = work.job.job;
  const auto position = static_cast<size_t>(work.job.wanted[wanted]);
  const std::string trace = position < job.traces.size() ? job.traces[position] : "";
  measure::MeasureInput input{.id = work.job.number, .trace = trace};
  if (job.kind == proto::JobKind::kCompare) input.kind = measure::MeasureKind::kFinal;
  const measure::BuiltCandidate built =
      builder_.Build(*work.workload, job.target, trace, job.seed, hook_ ? hook_(input) : "",
                     measure::Keep::kNo, &work.stop);
  *took_ns = built.build_ns;
  if (built.error.outcome != measure::Outcome::kOk) {
    return Failed(built.error.outcome, built.error.message);
  }
  auto bytes =
      std::make_shared<const std::string>(measure::EncodeBuiltArtifact(measure::ArtifactOf(built)));
  const auto size = static_cast<int64_t>(bytes->size());
  if (size > proto::kMaxArtifactBytes) {
    return Failed(
        measure::Outcome::kBuildFailed,
        fmt::format("its code takes {} bytes; at most {} can be sent to a worker that runs it",
                    size, proto::kMaxArtifactBytes));
  }
  return {.artifact = {.sha256 = Sha256Hex(*bytes), .bytes = size}, .bytes = std::move(bytes)};
}

void BuildBench::Finish(const Work& work) {
  const proto::Job& job = work.job.job;
  for (size_t i = 0; i < work.made.size(); ++i) {
    const proto::Artifact& artifact = work.made[i].artifact;
    if (artifact.outcome == measure::Outcome::kOk) continue;
    // The rest of a comparison is compared, unless it was the machine's fault.
    const bool lost = artifact.outcome == measure::Outcome::kWorkerLost;
    if (job.kind == proto::JobKind::kCompare && !lost) continue;
    const bool is_default = static_cast<size_t>(work.job.wanted[i]) >= job.traces.size();
    return events_.finished(
        work.job.number,
        {.outcome = artifact.outcome,
         .message = proto::Cut((is_default ? kDefaultFailed : "") + artifact.message,
                               proto::kMaxTextBytes),
         .build_ns = work.build_ns});
  }
  events_.built(work.job.number, work.made, work.build_ns);
}

void BuildBench::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const auto [work, wanted] = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    int64_t took_ns = 0;
    HeldArtifact made = Build(*work, wanted, &took_ns);
    events_.busy(took_ns / processes_);
    lock.lock();
    work->made[wanted] = std::move(made);
    work->build_ns += took_ns;
    if (--work->left > 0 || work->cancelled) continue;
    works_.erase(work->job.number);
    lock.unlock();
    Finish(*work);
    lock.lock();
  }
}

}  // namespace hone::worker
