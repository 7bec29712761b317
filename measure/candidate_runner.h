#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "measure/candidate_builder.h"
#include "measure/measurer.h"
#include "measure/runner_client.h"
#include "measure/validation.h"

namespace hone::measure {

struct OracleOptions {
  int points = 32;                                 ///< per Workload, over all its outputs
  int64_t budget_ns = 3'000'000'000;               ///< no further points once this much was spent
  int64_t max_reference_bytes = int64_t{1} << 30;  ///< of references kept
  std::shared_ptr<DiskCache> cache;                ///< of the oracle's values; null: none
};

/// How an attempt ended whose runner failed like this (RunnerClient's errors), and why.
AttemptError ErrorOfRunner(const absl::Status& status);

/// Runs built candidates one at a time: checks their whole output against the default schedule's,
/// which was checked against the oracle once per (Workload, target, seed), then times them.
/// Not thread-safe.
class CandidateRunner {
 public:
  /// The clock must outlive it.
  /// `build_default` gives the default schedule of an input's Workload, target and seed.
  CandidateRunner(RunnerOptions runner, OracleOptions oracle,
                  std::function<BuiltCandidate(const MeasureInput&)> build_default,
                  const MonotonicClock& clock);

  /// Prepares a candidate in `slot` (0 to kMaxSlots - 2) and checks it: outcome kOk, or why not.
  /// `hook`: PrepareJob::test_hook.
  AttemptError Prepare(const MeasureInput& input, const BuiltCandidate& candidate, int slot,
                       const std::string& hook);

  /// What a part of the work says of a whole run.
  struct OnPart {
    double part = 1;                  ///< how much it was
    std::vector<int64_t> samples_ns;  ///< of a whole run; none: the part says nothing
    bool noisy = false;
    std::string conditions;
  };
  /// Runs a part of the work in slot 0 that takes the default schedule about input.part_ns: nothing
  /// where the whole is not much longer, the kind runs no parts, or anything failed, which the
  /// whole will say better. What one phase alone computes is compared with the default's.
  OnPart TimeOnPart(const MeasureInput& input, const BuiltCandidate& candidate,
                    const std::string& hook);
  /// The shortest whole run of the input's Workload: its incumbent_ns, or what was noted here since
  /// it was submitted. 0: none.
  int64_t IncumbentNs(const MeasureInput& input, const BuiltCandidate& candidate) const;
  void NoteWhole(const MeasureInput& input, const BuiltCandidate& candidate, int64_t ns);

  struct Timed {
    AttemptError error;
    TimeReply reply;
    bool noisy = false;  ///< the sentinel took over 1.25 times its least, or the answer came late
  };
  Timed Time(int slot, const TimingPolicy& policy);

  /// Time spent on defaults and their oracles: once per task, in no result's run_ms.
  int64_t reference_ns() const { return reference_ns_; }

  /// RunnerClient's.
  int device_failures() const { return runner_.device_failures(); }
  const std::string& device_failure() const { return runner_.device_failure(); }

  /// RunnerClient's: from any thread.
  void Interrupt() { runner_.Interrupt(); }
  void Resume() { runner_.Resume(); }
  /// Median time of the sentinel kernel's latest runs, ns; 0: there were too few yet.
  int64_t sentinel_ns() const;

 private:
  struct Reference {
    AttemptError error;  ///< not kOk: the default itself is wrong or does not run
    std::vector<ReferenceOutput> outputs;
    int64_t bytes = 0;
    int64_t run_ns = 0;    ///< of the default, once
    int64_t least_ns = 0;  ///< NoteWhole
  };

  /// `error`: what of it the attempt gets; outcome kOk with a reply. `late`: others had the CPUs.
  absl::StatusOr<TimeReply> AskForTimes(int slot, const TimingPolicy& policy, AttemptError* error,
                                        bool* late);
  const Reference& ReferenceOf(const MeasureInput& input, const PrepareJob& job);
  Reference MakeReferenceOf(const MeasureInput& input);
  absl::Status CheckDefault(const MeasureInput& input, const std::vector<ReferenceOutput>& made);

  const std::string device_;
  RunnerClient runner_;
  const OracleOptions oracle_;
  const std::function<BuiltCandidate(const MeasureInput&)> build_default_;
  const MonotonicClock& clock_;
  std::map<std::string, Reference> references_;
  int64_t reference_bytes_ = 0;
  int64_t reference_ns_ = 0;
  int64_t least_sentinel_ns_ = 0;
  std::deque<int64_t> sentinels_ns_;      // the latest
  std::map<int, int64_t> flushed_bytes_;  // by slot: before each timed run
};

}  // namespace hone::measure
