#include "worker/bench.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/status.h"
#include "measure/built_artifact.h"
#include "measure/candidate_runner.h"
#include "measure/device.h"
#include "measure/others_watch.h"
#include "proto/field_check.h"

namespace hone::worker {
namespace {

constexpr int64_t kCollectNs = 100'000'000;

int64_t Nanoseconds(double ms) { return static_cast<int64_t>(ms * 1e6); }

proto::WorkResult Failed(measure::Outcome outcome, const std::string& message) {
  return {.outcome = outcome, .message = proto::Cut(message, proto::kMaxTextBytes)};
}

std::vector<int64_t> Bounded(std::vector<int64_t> samples) {
  if (samples.size() > proto::kMaxSamples) samples.resize(proto::kMaxSamples);
  for (int64_t& sample : samples) sample = std::max<int64_t>(sample, 1);
  return samples;
}

std::vector<proto::KernelTimes> KernelsOf(measure::ModelTimes& model) {
  std::vector<proto::KernelTimes> kernels;
  for (auto& [hash, samples_ns] : model.kernel_ns) {
    const auto workload = Hash128::FromHex(hash);
    if (!workload || kernels.size() == proto::kMaxKernels) continue;
    kernels.push_back({*workload, Bounded(std::move(samples_ns))});
  }
  return kernels;
}

/// The packages of a job of models, for the runner.
absl::StatusOr<measure::ModelJob> ModelsOf(const DeskJob& job) {
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(job.job.target, &target, &why)) return absl::InvalidArgumentError(why);
  measure::ModelJob models{.seed = job.job.seed,
                           .threads = target.threads,
                           .rounds = job.job.rounds,
                           .most_ns = job.job.most_ns};
  for (size_t i = 0; i < job.job.traces.size() && i < job.artifacts.size(); ++i) {
    if (job.artifacts[i].bytes == nullptr)
      return absl::InvalidArgumentError("a package is missing");
    models.packages.push_back(*job.artifacts[i].bytes);
  }
  return models;
}

}  // namespace

Bench::Bench(measure::LocalMeasurerOptions options, proto::WorkerRole role,
             measure::DeviceLock lock, const MonotonicClock& clock, Events events)
    : clock_(clock),
      events_(std::move(events)),
      models_(options.runner, clock),
      device_(options.runner.device),
      lock_(std::move(lock)) {
  options.before_run = [this](const std::vector<int64_t>& numbers) {
    lock_.Take();
    events_.started(numbers);
    began_ns_ = clock_.NowNs();
  };
  options.after_run = [this] {
    const int64_t took_ns = clock_.NowNs() - began_ns_;
    lock_.Free();
    events_.busy(took_ns);
  };
  if (role == proto::WorkerRole::kRun) {
    options.build = [this](const measure::MeasureInput& input) { return FromArtifact(input); };
    // Reading an artifact takes no time worth a second thread.
    options.builder.processes = 1;
    options.runner.jobs_per_process = 1;
  }
  measurer_ = std::make_unique<measure::LocalMeasurer>(std::move(options), clock);
  collector_ = std::thread([this] { Collect(); });
  comparer_ = std::thread([this] { CompareAll(); });
}

Bench::~Bench() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    comparisons_.clear();
    models_.Interrupt();
  }
  changed_.notify_all();
  comparer_.join();
  collector_.join();
}

measure::BuiltCandidate Bench::FromArtifact(const measure::MeasureInput& input) {
  measure::BuiltCandidate built;
  HeldArtifact held;
  {
    const std::lock_guard lock(mutex_);
    const auto job = jobs_.find(input.id);
    if (job == jobs_.end()) {
      built.error.message = "its lease was given up";
      return built;
    }
    const std::vector<std::string>& traces = job->second.job.traces;
    // Behind them is the default schedule's.
    const auto at = std::ranges::find(traces, input.trace) - traces.begin();
    held = job->second.artifacts.at(static_cast<size_t>(at));
  }
  if (held.bytes == nullptr) {
    built.error = {held.artifact.outcome, held.artifact.message};
    return built;
  }
  return measure::CandidateFrom(*input.workload, input.target, input.trace, input.seed,
                                *held.bytes);
}

void Bench::Finish(int64_t number, proto::WorkResult result) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.erase(number);
  }
  events_.finished(number, std::move(result));
}

void Bench::Add(DeskJob job) {
  if (job.job.kind == proto::JobKind::kModel) {
    auto models = ModelsOf(job);
    if (!models.ok()) {
      return events_.finished(
          job.number, Failed(measure::Outcome::kWorkerLost, StatusMessage(models.status())));
    }
    const std::lock_guard lock(mutex_);
    comparisons_.push_back({.number = job.number, .models = *std::move(models)});
    changed_.notify_all();
    return;
  }
  auto workload = workloads_.Of(job.job.workload);
  if (!workload.ok()) {
    return events_.finished(job.number,
                            Failed(measure::Outcome::kIllegal, StatusMessage(workload.status())));
  }
  const bool compare = job.job.kind == proto::JobKind::kCompare;
  std::vector<measure::MeasureInput> inputs;
  for (const std::string& trace : job.job.traces) {
    measure::MeasureInput& input = inputs.emplace_back();
    input.id = job.number;
    input.workload = *workload;
    input.target = job.job.target;
    input.trace = trace;
    input.kind = compare ? measure::MeasureKind::kFinal : measure::MeasureKind::kScreen;
    input.accuracy = job.job.accuracy;
    input.incumbent_ns = job.job.incumbent_ns;
    input.seed = job.job.seed;
    input.part_ns = job.job.part_ns;
    input.part_ratio = job.job.part_ratio;
    input.both_ways = job.job.both_ways;
  }
  {
    const std::lock_guard lock(mutex_);
    const int rounds = job.job.rounds;
    if (job.kind == proto::LeaseKind::kRun) jobs_[job.number] = job;
    if (compare) {
      comparisons_.push_back({job.number, std::move(inputs), rounds});
    } else {
      ++submitted_;
      measurer_->Submit(std::move(inputs.front()));
    }
  }
  changed_.notify_all();
}

void Bench::Cancel(int64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(comparisons_, [&](const Comparison& c) { return c.number == number; });
  submitted_ -= measurer_->Cancel(number);
  if (number == model_number_) models_.Interrupt();
  jobs_.erase(number);
}

absl::StatusOr<measure::DeviceProbes> Bench::Probe(const ir::Target& target) {
  absl::StatusOr<measure::DeviceProbes> probes;
  measurer_->WhileNotTiming([&] {
    lock_.Take();
    probes = measure::ProbeDevice(target, clock_);
    lock_.Free();
  });
  return probes;
}

void Bench::Collect() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || submitted_ > 0; });
      if (stopping_) return;
    }
    std::vector<measure::MeasureResult> results = measurer_->Collect(kCollectNs);
    for (measure::MeasureResult& r : results) {
      Finish(r.id, {.outcome = r.outcome,
                    .message = proto::Cut(r.message, proto::kMaxTextBytes),
                    .samples_ns = Bounded(std::move(r.samples_ns)),
                    .hopeless = r.hopeless,
                    .noisy = r.noisy,
                    .build_ns = Nanoseconds(r.build_ms),
                    .run_ns = Nanoseconds(std::max(r.run_ms, 0.0)),
                    .part_ns = r.part_ns,
                    .part = r.part});
    }
    const std::lock_guard lock(mutex_);
    submitted_ -= static_cast<int64_t>(results.size());
  }
}

void Bench::CompareAll() {
  for (;;) {
    int64_t number = 0;
    std::future<std::vector<measure::ComparedTrace>> result_of;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !comparisons_.empty(); });
      if (stopping_) return;
      Comparison comparison = std::move(comparisons_.front());
      comparisons_.pop_front();
      number = comparison.number;
      if (comparison.models) {
        model_number_ = number;
        lock.unlock();
        proto::WorkResult result = CompareModels(number, *comparison.models);
        Finish(number, std::move(result));
        continue;
      }
      // Cancel finds it here or there, at every moment.
      result_of = measurer_->StartComparing(std::move(comparison.inputs), comparison.rounds);
    }
    const std::vector<measure::ComparedTrace> compared = result_of.get();
    proto::WorkResult result{.outcome = measure::Outcome::kOk};
    for (const measure::ComparedTrace& c : compared) {
      result.run_ns += Nanoseconds(c.run_ms);
      result.noisy |= c.noisy;
      result.compared.push_back({.outcome = c.error.outcome,
                                 .message = proto::Cut(c.error.message, proto::kMaxTextBytes),
                                 .samples_ns = Bounded(c.samples_ns)});
    }
    Finish(number, std::move(result));
  }
}

proto::WorkResult Bench::CompareModels(int64_t number, const measure::ModelJob& models) {
  absl::StatusOr<std::vector<measure::ModelTimes>> times;
  proto::WorkResult result{.outcome = measure::Outcome::kOk};
  measurer_->WhileNotTiming([&] {
    lock_.Take();
    events_.started({number});
    const int64_t began_ns = clock_.NowNs();
    const auto others = measure::WatchOthersOf(device_, clock_);
    times = models_.RunModels(models);
    result.noisy = others && others->SinceLast().value_or(0) > measure::OthersWatch::kDisturbing;
    result.run_ns = clock_.NowNs() - began_ns;
    lock_.Free();
    events_.busy(result.run_ns);
  });
  {
    const std::lock_guard lock(mutex_);
    model_number_ = 0;
    if (!stopping_) models_.Resume();
  }
  if (!times.ok()) {
    const measure::AttemptError error = measure::ErrorOfRunner(times.status());
    result.outcome = error.outcome;
    result.message = proto::Cut(error.message, proto::kMaxTextBytes);
    return result;
  }
  for (measure::ModelTimes& model : *times) {
    result.compared.push_back({.outcome = measure::Outcome::kOk,
                               .samples_ns = Bounded(std::move(model.samples_ns)),
                               .kernels = KernelsOf(model)});
  }
  return result;
}

}  // namespace hone::worker
