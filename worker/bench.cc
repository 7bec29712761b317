#include "worker/bench.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "proto/field_check.h"

namespace hone::worker {
namespace {

constexpr int64_t kCollectNs = 100'000'000;
constexpr size_t kMostWorkloads = 256;

int64_t Nanoseconds(double ms) { return static_cast<int64_t>(ms * 1e6); }

proto::WorkResult Failed(measure::Outcome outcome, const std::string& message) {
  return {.outcome = outcome, .message = proto::Cut(message, proto::kMaxTextBytes)};
}

std::vector<int64_t> Bounded(std::vector<int64_t> samples) {
  if (samples.size() > proto::kMaxSamples) samples.resize(proto::kMaxSamples);
  for (int64_t& sample : samples) sample = std::max<int64_t>(sample, 1);
  return samples;
}

}  // namespace

Bench::Bench(measure::LocalMeasurerOptions options, DeviceLock lock, const MonotonicClock& clock,
             Events events)
    : clock_(clock), events_(std::move(events)), lock_(std::move(lock)) {
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
  measurer_ = std::make_unique<measure::LocalMeasurer>(std::move(options), clock);
  collector_ = std::thread([this] { Collect(); });
  comparer_ = std::thread([this] { CompareAll(); });
}

Bench::~Bench() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    comparisons_.clear();
  }
  changed_.notify_all();
  comparer_.join();
  collector_.join();
}

absl::StatusOr<std::shared_ptr<const ir::Workload>> Bench::WorkloadOf(const std::string& text) {
  const auto known = workloads_.find(text);
  if (known != workloads_.end()) return known->second;
  HONE_ASSIGN_OR_RETURN(ir::Workload workload, ir::ParseWorkload(text));
  HONE_RETURN_IF_ERROR(ir::Verify(workload));
  if (workloads_.size() >= kMostWorkloads) workloads_.clear();
  auto shared = std::make_shared<const ir::Workload>(std::move(workload));
  workloads_[text] = shared;
  return shared;
}

void Bench::Add(DeskJob job) {
  auto workload = WorkloadOf(job.job.workload);
  if (!workload.ok()) {
    return events_.finished(job.number,
                            Failed(measure::Outcome::kIllegal, StatusMessage(workload.status())));
  }
  const bool compare = job.job.kind == proto::JobKind::kCompare;
  std::vector<measure::MeasureInput> inputs;
  for (std::string& trace : job.job.traces) {
    measure::MeasureInput& input = inputs.emplace_back();
    input.id = job.number;
    input.workload = *workload;
    input.target = job.job.target;
    input.trace = std::move(trace);
    input.kind = compare ? measure::MeasureKind::kFinal : measure::MeasureKind::kScreen;
    input.accuracy = job.job.accuracy;
    input.incumbent_ns = job.job.incumbent_ns;
    input.seed = job.job.seed;
  }
  {
    const std::lock_guard lock(mutex_);
    if (compare) {
      comparisons_.push_back({job.number, std::move(inputs), job.job.rounds});
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
      events_.finished(r.id, {.outcome = r.outcome,
                              .message = proto::Cut(r.message, proto::kMaxTextBytes),
                              .samples_ns = Bounded(std::move(r.samples_ns)),
                              .hopeless = r.hopeless,
                              .noisy = r.noisy,
                              .build_ns = Nanoseconds(r.build_ms),
                              .run_ns = Nanoseconds(std::max(r.run_ms, 0.0))});
    }
    const std::lock_guard lock(mutex_);
    submitted_ -= static_cast<int64_t>(results.size());
  }
}

void Bench::CompareAll() {
  for (;;) {
    Comparison comparison;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !comparisons_.empty(); });
      if (stopping_) return;
      comparison = std::move(comparisons_.front());
      comparisons_.pop_front();
    }
    const int64_t start_ns = clock_.NowNs();
    const auto compared = measurer_->Compare(comparison.inputs, comparison.rounds);
    proto::WorkResult result{.outcome = measure::Outcome::kOk, .run_ns = clock_.NowNs() - start_ns};
    for (const measure::ComparedTrace& c : compared) {
      result.compared.push_back({.outcome = c.error.outcome,
                                 .message = proto::Cut(c.error.message, proto::kMaxTextBytes),
                                 .samples_ns = Bounded(c.samples_ns)});
    }
    events_.finished(comparison.number, std::move(result));
  }
}

}  // namespace hone::worker
