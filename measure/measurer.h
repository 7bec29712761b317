#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/accuracy_class.h"
#include "ir/workload.h"
#include "measure/outcome.h"

// What a search asks of whoever measures: this machine (LocalMeasurer), a farm, or a test.
namespace hone::measure {

/// How much a measurement is worth.
enum class MeasureKind : uint8_t {
  kScreen = 0,  ///< racing: stops early when hopeless
  kFinal = 1,   ///< all repeats, whatever the incumbent
};

struct MeasureInput {
  int64_t id = 0;  ///< the caller's; comes back in the result
  std::shared_ptr<const ir::Workload> workload;
  std::string target;  ///< resolved text
  std::string trace;   ///< text; empty: the default schedule
  MeasureKind kind = MeasureKind::kScreen;
  ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;  ///< see measure/validation.h
  int64_t incumbent_ns = 0;                                  ///< best so far of this task; 0: none
  uint64_t seed = 0;                                         ///< of inputs and constants
  /// How many of the target's run it; 0: all. Fewer only on this machine and in a comparison,
  /// behind an input with all.
  int threads = 0;
  /// A screen begins on a part of the work that takes the default schedule about so long, where its
  /// whole takes several times that; 0: no part. What such a part takes is no latency: the
  /// candidate is run whole unless it is expected to be slower than the incumbent.
  int64_t part_ns = 0;
  double part_ratio = 1;   ///< how much longer a whole run takes than its part says
  bool both_ways = false;  ///< run whole whatever the part says, so that the two can be compared
};

struct MeasureResult {
  int64_t id = 0;
  Outcome outcome = Outcome::kWorkerLost;
  std::string message;  ///< what, where, why; when ok how the device did, where it tells
  /// Time of one run of the kernel, in the order measured; at least one when ok, empty otherwise.
  std::vector<int64_t> samples_ns;
  bool hopeless = false;  ///< stopped after the first run: more than 1.5 times the incumbent
  bool noisy = false;     ///< the sentinel kernel drifted while this was measured
  /// What a part of the work says of a whole run, ns; 0: no part was run.
  int64_t part_ns = 0;
  /// How much of the work samples_ns rest on. Below 1 the whole was not run (and its output not
  /// checked): they are what is expected of it, and it is slower than the incumbent.
  double part = 1;
  double build_ms = 0;
  double run_ms = 0;   ///< set-up, check and repeats together
  std::string device;  ///< device class of where it ran
};

/// How an attempt ended when not well, and why.
struct AttemptError {
  Outcome outcome = Outcome::kWorkerLost;
  std::string message;
};

/// One Trace of a comparison.
struct ComparedTrace {
  AttemptError error;  ///< outcome kOk: there are samples
  /// Sample r of all Traces was taken in round r, so that they pair.
  std::vector<int64_t> samples_ns;
  bool noisy = false;  ///< measured under foreign load, or by a device that nobody confirms
  double run_ms = 0;   ///< on the device, checks too: of nothing that was built for it
};

/// Measures candidates, many in flight. Implementations say whether they are thread-safe.
class Measurer {
 public:
  virtual ~Measurer() = default;

  /// Takes a candidate; returns at once. Its result is delivered by Collect, at most once, in any
  /// order; from a farm perhaps never.
  virtual void Submit(MeasureInput input) = 0;

  /// Results that are ready. With none ready and some under way, waits at most `timeout_ns` for one
  /// (0: does not wait; negative: as long as it takes). Empty: none came, or none is under way.
  virtual std::vector<MeasureResult> Collect(int64_t timeout_ns) = 0;

  /// Times several Traces of one Workload, target and seed in turns (A B C A B C …) after each was
  /// checked, so that a drift of the machine meets all alike: the decision between finalists,
  /// incumbent and default. Waits for it, and for what is being measured. Fewer than kMaxCompared.
  static constexpr int kMaxCompared = 64;
  virtual std::vector<ComparedTrace> Compare(const std::vector<MeasureInput>& inputs, int rounds);

  /// Gives up what has not begun: it is no longer in flight and gets no result. Called when a
  /// session ends; those that keep nothing back need not do anything.
  virtual void DropWaiting() {}

  /// Runs `work` of the caller's while nothing is being timed, and times nothing meanwhile, so that
  /// the search's own arithmetic disturbs no measurement on this machine.
  virtual void WhileNotTiming(const std::function<void()>& work) { work(); }

  /// Candidates submitted and not yet collected.
  virtual int64_t num_in_flight() const = 0;

  /// How many candidates keep it busy; more than twice as many in flight gain nothing.
  virtual int capacity() const = 0;
};

/// Median of samples (the mean of the middle two); 0 for none.
int64_t MedianNs(std::vector<int64_t> samples_ns);

}  // namespace hone::measure
