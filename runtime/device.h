#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "ir/per_kind.h"
#include "ir/plan.h"
#include "ir/target.h"
#include "runtime/crew.h"

// What the runtime asks of a kind of device: load the code of a model, prepare runs of its plan,
// run. One call runs the whole plan, so that a device may make one thing of it, like a graph.
namespace hone::runtime {

/// Memory of the caller: a model's input (only read) or output.
struct InputBuffer {
  const void* data = nullptr;
  size_t bytes = 0;
};
struct OutputBuffer {
  void* data = nullptr;
  size_t bytes = 0;
};

/// How a model is run. Devices heed what they have: threads are the host's.
struct RunOptions {
  int threads = 0;  ///< 0: as many as the code can use, however many cores there are
  /// Binds each worker to a physical core of its own, thread 0 (the caller of Run) excepted: run
  /// it on the first allowed CPU.
  bool pin = false;
  /// The memory node of each CPU (NodeOfEachCpu): constants are copied to the memory of each node.
  /// Empty: they stay where they are.
  std::vector<int> node_of_cpu = {};
  /// Lends the threads, as many as it has at most; null: the context starts its own.
  std::shared_ptr<ThreadPool> pool;
  /// Does the work instead, if it has a parallel_for.
  Executor executor;
  /// For how long a thread of its own spins at most before it sleeps.
  int64_t spin_ns = ThreadPool::kSpinNs;
  /// Every thread computes a fixed share of each phase and is waited for: for measurements.
  bool fixed_shares = false;
  /// Takes the time of each step with this clock, which must outlive the context. Null: no times.
  const MonotonicClock* profile_clock = nullptr;
  /// Fills arena, scratch and outputs with 0xff (NaN, -1) before each run, so that a read of
  /// something never written shows.
  bool poison = false;
};

/// A plan with memory of its own on a device. One run at a time.
class PreparedPlan {
 public:
  virtual ~PreparedPlan() = default;

  /// Threads of the host that a run may use.
  virtual int threads() const = 0;
  /// Runs the plan once and waits for it, as Context::Run says. Buffers are as that has checked
  /// them. Errors: those of Context::Run.
  virtual Status Run(std::span<const InputBuffer> inputs,
                     std::span<const OutputBuffer> outputs) = 0;
  /// Time of each of the plan's steps in the last run, ns; empty without a profile clock.
  virtual std::span<const int64_t> step_times_ns() const = 0;
  /// Runs of this plan are ordered in a stream of the caller's from now on; null: in its own.
  /// kFailedPrecondition: its kind of device has none. Not while a run is in progress.
  virtual Status SetStream(void* stream);
  /// Time of the last run by the device's own clock, ns, without copies of the caller's buffers;
  /// nothing for a device whose time is the host's, or without a profile clock.
  virtual std::optional<int64_t> device_ns() const { return std::nullopt; }
};

/// Code and constants of a model where its device can use them. Immutable, thread-safe.
class LoadedPlan {
 public:
  virtual ~LoadedPlan() = default;

  /// Memory and threads for runs; the LoadedPlan must outlive them. kResourceExhausted.
  virtual Result<std::unique_ptr<PreparedPlan>> Prepare(const RunOptions& options) const = 0;
};

/// What is loaded: parts of a checked package, which outlive the LoadedPlan.
struct LoadInput {
  const ir::Plan* plan = nullptr;
  std::span<const std::byte> code, constants;
  const ir::Target* target = nullptr;  ///< that the host can run
  int threads = 1;                     ///< of the host that the code can use
};

/// A kind of device. Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  /// Whether these bytes can be code for it: their frame. kInvalidArgument. Nothing is run.
  virtual Status CheckCode(std::span<const std::byte> code) const = 0;
  /// kInvalidArgument: the code does not fit the plan; kResourceExhausted: no memory for it.
  virtual Result<std::unique_ptr<const LoadedPlan>> Load(const LoadInput& input) const = 0;
};

/// The kinds that this program can run code for. ir::PerKind says how to add one.
ir::PerKind<Device>& DevicesOfKinds();

}  // namespace hone::runtime
