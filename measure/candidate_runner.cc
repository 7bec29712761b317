#include "measure/candidate_runner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/format.h"

#include "base/core/check.h"
#include "base/status.h"
#include "ir/kind_name.h"
#include "ir/text.h"
#include "measure/fill.h"
#include "measure/kind_runner.h"
#include "measure/oracle_memo.h"
#include "measure/timing.h"

namespace hone::measure {
namespace {

constexpr size_t kSentinels = 32;  ///< readings that are remembered

constexpr int kTries = 3;  ///< until times that cannot be are believed to be a lie
// Between these: bursts of load end.
constexpr int64_t kFirstPauseNs = 100'000'000;
constexpr int64_t kPauseGrowth = 4;

constexpr int kPointsAtOnce = 4;
constexpr double kDrift = 1.25;

/// A part is worth it where the whole is at least so many.
constexpr int64_t kLeastParts = 3;
/// A part is timed so often, unless that takes longer than so many parts of the default.
constexpr int kLeastPartSamples = 3, kMostPartSamples = 5;
constexpr int64_t kPartsTimed = 4;

// What the runner makes up, made up here.
std::vector<ir::TensorBuffer> MakeArguments(const ir::Workload& workload, uint64_t seed) {
  std::vector<int> ids = workload.Inputs();
  for (const int constant : workload.Constants()) ids.push_back(constant);
  const std::vector<RunTensor> tensors = RunTensorsOf(workload, ids);
  std::vector<ir::TensorBuffer> arguments;
  for (size_t i = 0; i < ids.size(); ++i) {
    arguments.push_back(
        ir::TensorBuffer::Zeros(workload.tensors[ids[i]].dtype, workload.tensors[ids[i]].shape));
    FillTensor(tensors[i].dtype, tensors[i].low, tensors[i].high, seed, static_cast<int>(i),
               std::as_writable_bytes(std::span(arguments.back().bytes)));
    FillZeros(tensors[i].zeros, seed, static_cast<int>(i),
              std::as_writable_bytes(std::span(arguments.back().bytes)));
  }
  return arguments;
}

std::string ReferenceKey(const MeasureInput& input, const PrepareJob& job) {
  return fmt::format("{}/{}/{}", job.data_key, input.target,
                     std::string(ir::AccuracyClassName(input.accuracy)));
}

}  // namespace

AttemptError ErrorOfRunner(const absl::Status& status) {
  const auto outcome = [&] {
    switch (status.code()) {
      case absl::StatusCode::kDeadlineExceeded: return Outcome::kRunTimeout;
      case absl::StatusCode::kResourceExhausted: return Outcome::kOutOfMemory;
      case absl::StatusCode::kAborted:
      case absl::StatusCode::kDataLoss:
      case absl::StatusCode::kOutOfRange: return Outcome::kRunCrashed;
      case absl::StatusCode::kInvalidArgument: return Outcome::kBuildFailed;
      default: return Outcome::kWorkerLost;
    }
  };
  return {outcome(), StatusMessage(status)};
}

CandidateRunner::CandidateRunner(RunnerOptions runner, OracleOptions oracle,
                                 std::function<BuiltCandidate(const MeasureInput&)> build_default,
                                 const MonotonicClock& clock)
    : device_(runner.device),
      runner_(std::move(runner), clock),
      oracle_(oracle),
      build_default_(std::move(build_default)),
      clock_(clock) {}

AttemptError CandidateRunner::Prepare(const MeasureInput& input, const BuiltCandidate& candidate,
                                      int slot, const std::string& hook) {
  const Reference& reference = ReferenceOf(input, candidate.job);
  if (reference.error.outcome != Outcome::kOk) return reference.error;
  PrepareJob job = candidate.job;
  job.slot = slot;
  job.test_hook = hook;
  if (input.threads > 0) job.threads = std::min(job.threads, input.threads);
  const auto outputs = runner_.Prepare(job);
  if (!outputs.ok()) return ErrorOfRunner(outputs.status());
  const absl::Status same = CompareOutputs(reference.outputs, *outputs, input.accuracy);
  if (!same.ok()) {
    // It may have damaged the process, and others would run in it.
    runner_.EndProcess();
    return {Outcome::kWrongAnswer, StatusMessage(same)};
  }
  flushed_bytes_[slot] = 0;
  const ir::Artifact& artifact = job.kernel.artifact;
  for (const auto* buffers : {&artifact.constants, &artifact.prologue}) {
    for (const ir::ArtifactBuffer& buffer : *buffers) flushed_bytes_[slot] += buffer.bytes;
  }
  return {Outcome::kOk, ""};
}

CandidateRunner::OnPart CandidateRunner::TimeOnPart(const MeasureInput& input,
                                                    const BuiltCandidate& candidate,
                                                    const std::string& hook) {
  const KindRunner* const kind = RunnersOfKinds().Find(ir::KindNameOf(device_));
  if (input.part_ns <= 0 || kind == nullptr || !kind->runs_parts()) return {};
  const Reference& reference = ReferenceOf(input, candidate.job);
  if (reference.error.outcome != Outcome::kOk || reference.run_ns < kLeastParts * input.part_ns)
    return {};
  PrepareJob job = candidate.job;
  job.slot = 0;
  job.test_hook = hook;
  job.part = static_cast<double>(input.part_ns) / static_cast<double>(reference.run_ns);
  const auto outputs = runner_.Prepare(job);
  if (!outputs.ok()) return {};
  const ir::Artifact& artifact = job.kernel.artifact;
  // What a later phase computes may rest on what was not.
  if (artifact.phases.size() == 1 && artifact.steps.front().repeats == 1) {
    const auto right =
        ComparePart(reference.outputs, *outputs, runner_.Touched(job), input.accuracy);
    if (!right.ok() || *right == 0) return {};
  }
  flushed_bytes_[0] = 0;
  OnPart on_part{.part = runner_.part_run()};
  const int64_t incumbent_ns = input.both_ways ? 0 : IncumbentNs(input, candidate);
  // What the part takes of one that is as fast as the incumbent.
  TimingPolicy policy{.warmups = 0,
                      .min_samples = kLeastPartSamples,
                      .max_samples = kMostPartSamples,
                      .max_total_ns = kPartsTimed * input.part_ns,
                      .min_sample_ns = 0,
                      .cold_constants = false};
  policy.incumbent_ns =
      static_cast<int64_t>(on_part.part / input.part_ratio * static_cast<double>(incumbent_ns));
  // A part that cannot be cut further is not run again where that run was hopeless.
  if (policy.incumbent_ns > 0 && runner_.run_ns() > policy.max_total_ns &&
      static_cast<double>(runner_.run_ns()) >
          policy.hopeless_ratio * static_cast<double>(policy.incumbent_ns)) {
    on_part.samples_ns = {runner_.run_ns()};
  } else {
    Timed timed = Time(0, policy);
    if (timed.error.outcome != Outcome::kOk) return {};
    on_part = {.part = timed.reply.part,
               .samples_ns = std::move(timed.reply.samples_ns),
               .noisy = timed.noisy,
               .conditions = std::move(timed.reply.conditions)};
  }
  for (int64_t& ns : on_part.samples_ns) {
    ns = static_cast<int64_t>(static_cast<double>(ns) / on_part.part);
  }
  return on_part;
}

int64_t CandidateRunner::IncumbentNs(const MeasureInput& input,
                                     const BuiltCandidate& candidate) const {
  const auto known = references_.find(ReferenceKey(input, candidate.job));
  const int64_t noted_ns = known == references_.end() ? 0 : known->second.least_ns;
  if (noted_ns == 0 || input.incumbent_ns == 0) return std::max(noted_ns, input.incumbent_ns);
  return std::min(noted_ns, input.incumbent_ns);
}

void CandidateRunner::NoteWhole(const MeasureInput& input, const BuiltCandidate& candidate,
                                int64_t ns) {
  const auto known = references_.find(ReferenceKey(input, candidate.job));
  if (known == references_.end()) return;
  int64_t& least_ns = known->second.least_ns;
  least_ns = least_ns == 0 ? ns : std::min(least_ns, ns);
}

int64_t CandidateRunner::sentinel_ns() const {
  if (sentinels_ns_.size() < kSentinels / 2) return 0;
  return MedianNs({sentinels_ns_.begin(), sentinels_ns_.end()});
}

absl::StatusOr<TimeReply> CandidateRunner::AskForTimes(int slot, const TimingPolicy& policy,
                                                       AttemptError* error, bool* late) {
  const KindRunner* const kind = RunnersOfKinds().Find(ir::KindNameOf(device_));
  HONE_CHECK(kind != nullptr) << device_ << " was never prepared for";
  int64_t pause_ns = kFirstPauseNs;
  for (int tries = 1;; ++tries) {
    const std::optional<CpuShare> share = runner_.ShareCpu();
    const int64_t start_ns = clock_.NowNs();
    absl::StatusOr<TimeReply> reply = runner_.Time({slot, policy});
    AnswerWait wait{.elapsed_ns = clock_.NowNs() - start_ns};
    if (!reply.ok()) {
      *error = ErrorOfRunner(reply.status());
      return reply;
    }
    if (const auto used = share ? share->SinceBegun() : std::nullopt) {
      wait.queued_ns = used->queued_ns;
      wait.ran_ns = used->ran_ns;
    }
    Status possible = CheckTimes(*reply, policy, wait.elapsed_ns);
    if (possible.ok()) possible = kind->CheckWait(*reply, flushed_bytes_[slot], wait);
    if (possible.ok()) {
      error->outcome = Outcome::kOk;
      *late = kind->CameLate(*reply, flushed_bytes_[slot], wait);
      return reply;
    }
    // A machine may stand still once; what is said again is a lie, unless the runner stood still.
    if (possible.code() != StatusCode::kDataLoss && tries < kTries) {
      clock_.SleepNs(std::exchange(pause_ns, pause_ns * kPauseGrowth));
      continue;
    }
    const bool lied = possible.code() != StatusCode::kDeadlineExceeded;
    if (lied) runner_.EndProcess();
    *error = {lied ? Outcome::kWrongAnswer : Outcome::kWorkerLost, possible.message()};
    return ToAbsl(possible);
  }
}

CandidateRunner::Timed CandidateRunner::Time(int slot, const TimingPolicy& policy) {
  Timed timed;
  absl::StatusOr<TimeReply> reply = AskForTimes(slot, policy, &timed.error, &timed.noisy);
  if (!reply.ok()) return timed;
  timed.reply = *std::move(reply);
  const int64_t sentinel_ns = timed.reply.sentinel_ns;
  sentinels_ns_.push_back(sentinel_ns);
  if (sentinels_ns_.size() > kSentinels) sentinels_ns_.pop_front();
  if (least_sentinel_ns_ == 0 || sentinel_ns < least_sentinel_ns_) least_sentinel_ns_ = sentinel_ns;
  timed.noisy |=
      static_cast<double>(sentinel_ns) > kDrift * static_cast<double>(least_sentinel_ns_);
  return timed;
}

const CandidateRunner::Reference& CandidateRunner::ReferenceOf(const MeasureInput& input,
                                                               const PrepareJob& job) {
  const std::string key = ReferenceKey(input, job);
  const auto known = references_.find(key);
  if (known != references_.end()) {
    if (known->second.error.outcome != Outcome::kWorkerLost) return known->second;
    references_.erase(known);
  }
  if (reference_bytes_ > oracle_.max_reference_bytes) {
    references_.clear();
    reference_bytes_ = 0;
  }
  const int64_t start_ns = clock_.NowNs();
  Reference reference = MakeReferenceOf(input);
  reference_ns_ += clock_.NowNs() - start_ns;
  reference_bytes_ += reference.bytes;
  return references_.try_emplace(key, std::move(reference)).first->second;
}

CandidateRunner::Reference CandidateRunner::MakeReferenceOf(const MeasureInput& input) {
  Reference reference;
  const auto fail = [&](AttemptError error) {
    error.message = "the default schedule, which candidates are compared with: " + error.message;
    reference.error = std::move(error);
    return reference;
  };
  BuiltCandidate built = build_default_(input);
  if (built.error.outcome != Outcome::kOk) return fail(built.error);
  built.job.slot = kReferenceSlot;
  const auto outputs = runner_.Prepare(built.job);
  if (!outputs.ok()) return fail(ErrorOfRunner(outputs.status()));
  reference.run_ns = runner_.run_ns();
  reference.outputs = MakeReference(*input.workload, *outputs);
  for (const ReferenceOutput& output : reference.outputs) {
    reference.bytes += static_cast<int64_t>(output.bytes.size());
  }
  const absl::Status right = CheckDefault(input, reference.outputs);
  if (!right.ok()) return fail({Outcome::kWrongAnswer, StatusMessage(right)});
  reference.error.outcome = Outcome::kOk;
  return reference;
}

absl::Status CandidateRunner::CheckDefault(const MeasureInput& input,
                                           const std::vector<ReferenceOutput>& made) {
  std::vector<ir::TensorBuffer> arguments;  // made when something is not known yet
  const std::string text = ir::ToText(*input.workload);
  const int64_t deadline_ns = clock_.NowNs() + oracle_.budget_ns;
  const int per_output = std::max(2, oracle_.points / std::max(1, static_cast<int>(made.size())));
  for (size_t k = 0; k < made.size(); ++k) {
    const std::vector<int64_t> points = SamplePoints(made[k].shape, per_output, input.seed);
    const auto output = static_cast<int>(k);
    OracleMemo memo(oracle_.cache, fmt::format("seed {} output {}\n{}", input.seed, k, text),
                    points, [&](std::span<const int64_t> some) {
                      if (arguments.empty()) {
                        arguments = MakeArguments(*input.workload, input.seed);
                      }
                      return ir::EvaluatePoints(*input.workload, arguments, output, some);
                    });
    for (size_t at = 0; at < points.size(); at += kPointsAtOnce) {
      const size_t count = std::min<size_t>(kPointsAtOnce, points.size() - at);
      HONE_ASSIGN_OR_RETURN(const std::span<const ir::PointValue> values, memo.Values(at, count));
      HONE_RETURN_IF_ERROR(CheckWithOracle(made[k], output, std::span(points).subspan(at, count),
                                           values, input.accuracy));
      // Expensive Workloads (long scans) get fewer points, each output at least the first ones.
      if (clock_.NowNs() >= deadline_ns) break;
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::measure
