#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/byte_stream.h"
#include "base/core/result.h"
#include "ir/artifact.h"
#include "ir/zero_pattern.h"

// What hone-runner is asked and what it answers, and both as payloads of measure/wire.h. std only.
// Decoders trust nothing: kDataLoss for anything that is not what the encoder wrote.
//
// A runner is started with a descriptor beside its pipes: kOutputFd, a memory file in which it
// leaves outputs for the supervisor to look at. It keeps prepared kernels in numbered slots.
namespace hone::measure {

/// Descriptor of the outputs' memory file in the runner.
inline constexpr int kOutputFd = 3;

/// Exit code by which the runner says that it ran out of memory outside a kernel.
inline constexpr int kRunnerOutOfMemory = 77;
/// Exit code by which the runner says that it could not give up its rights.
inline constexpr int kRunnerNoSandbox = 78;

/// Exit code by which the runner says that its device cannot be opened.
inline constexpr int kRunnerNoDevice = 79;

/// Slots that a runner has.
inline constexpr int kMaxSlots = 64;
/// The last one is for the default schedule that candidates are compared with.
inline constexpr int kReferenceSlot = kMaxSlots - 1;

/// A tensor that the runner makes up, see measure/fill.h.
struct RunTensor {
  ir::DType dtype = ir::DType::kF32;
  int64_t bytes = 0;
  double low = -1, high = 1;  ///< values lie in [low, high)
  ir::ZeroPattern zeros = {};  ///< and which of them are zero instead
};

/// A kernel with its code.
struct RunKernel {
  ir::Artifact artifact;
  std::string shared_object;
};

/// Loads a kernel into a slot, makes its inputs and constants, runs the prologue, runs the kernel
/// once and leaves the outputs in the memory file.
struct PrepareJob {
  int32_t slot = 0;
  /// What tells the tensors of one Workload and seed from others: equal names share them.
  std::string data_key;
  uint64_t seed = 0;
  std::vector<RunTensor> inputs, constants;  ///< the Workload's, in its order
  RunKernel kernel;
  /// Makes kernel.artifact.prologue; its shared object is empty when there is none. Compiled with
  /// the constants as inputs: its input i is constant prologue_arguments[i].
  RunKernel prologue;
  std::vector<int32_t> prologue_arguments;
  /// What tells prologues apart: equal ones on equal data are run once.
  std::string prologue_key;
  int32_t threads = 1;  ///< that run the kernel together: at most the runner's
  /// Below 1: only so much of each phase's iterations is run, here and when it is timed. The
  /// outputs are as they are mapped, and the workspace is not poisoned. For kinds that can
  /// (KindRunner::runs_parts).
  double part = 1;
  /// Heeded only by a runner that was started with --test-hooks: "crash", "overrun", "hang",
  /// "wrong", "memory", "socket", "exec", "fork", "write", "read", "forge", "lie", or "kill-" with
  /// a step of EndIfAsked.
  std::string test_hook;
};

/// Where outputs lie in the memory file. Each ends where a guard page follows in the runner.
struct SharedBuffer {
  int64_t region_offset = 0;  ///< whole pages
  int64_t region_bytes = 0;
  int64_t data_offset = 0;  ///< in the file, 64-aligned
  int64_t data_bytes = 0;
};

/// The places of a kernel's outputs, the same on both sides; the file's size is the end of the
/// last region.
std::vector<SharedBuffer> PlaceOutputs(const std::vector<ir::ArtifactBuffer>& outputs);
int64_t SharedBytes(const std::vector<SharedBuffer>& places);

/// A piece of an output.
struct ByteRange {
  int64_t begin = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// A kernel as part of a payload.
void PutRunKernel(ByteWriter& writer, const RunKernel& kernel);
RunKernel GetRunKernel(ByteReader& reader);

struct PrepareReply {
  Status status;       ///< kResourceExhausted: no memory; kOutOfRange: a bad index; others: refused
  int64_t run_ns = 0;  ///< what the one run took
  double part = 1;     ///< TimeReply::part of it
};

/// How often to run, see measure/timing.h.
struct TimingPolicy {
  int64_t incumbent_ns = 0;     ///< 0: none, nothing is hopeless
  double hopeless_ratio = 1.5;  ///< times the incumbent, after one sample; 0: go on anyway
  int32_t warmups = 1;
  int32_t min_samples = 5;
  int32_t max_samples = 20;
  int64_t max_total_ns = 60'000'000;  ///< no further sample once this much was timed
  int64_t min_sample_ns = 20'000;     ///< shorter runs are repeated within a sample
  bool cold_constants = true;         ///< constants leave the caches before each run
};

struct TimeJob {
  int32_t slot = 0;
  TimingPolicy policy;
};

struct TimeReply {
  Status status;
  std::vector<int64_t> samples_ns;
  bool hopeless = false;
  int64_t sentinel_ns = 0;  ///< time of the runner's own fixed piece of work, least of three
  int64_t runs = 0;         ///< of the kernel, warm-ups too
  int64_t timed_ns = 0;     ///< of all of them; who asks compares it with its clock
  /// The share of a whole run's time that the samples are of, above 0: 1 unless a part was
  /// prepared.
  double part = 1;
  std::string conditions;  ///< OpenDevice::Conditions, right after
};

/// Whole models, to be run in turns on inputs and constants that the runner makes up.
struct ModelJob {
  uint64_t seed = 0;
  int32_t threads = 1;
  int32_t rounds = 0;                 ///< at most; five are run in any case
  int64_t most_ns = 0;                ///< no further round once so much time has passed
  std::vector<std::string> packages;  ///< CutConstants of each (measure/seeded_package.h)
};

/// What a package took, ns, by round.
struct ModelTimes {
  std::vector<int64_t> samples_ns;  ///< of a run
  /// By Workload hash (hexadecimal): all its steps of a run together. The first rounds alone, at
  /// most kKernelRounds, and kMaxKernelSamples all kernels together.
  std::map<std::string, std::vector<int64_t>> kernel_ns;
};
inline constexpr size_t kKernelRounds = 64, kMaxKernelSamples = size_t{1} << 17;

struct ModelReply {
  Status status;
  std::vector<ModelTimes> models;  ///< by package
};

std::string EncodeModelJob(const ModelJob& job);
Result<ModelJob> DecodeModelJob(std::string_view payload);
std::string EncodeModelReply(const ModelReply& reply);
Result<ModelReply> DecodeModelReply(std::string_view payload);
std::string EncodePrepareJob(const PrepareJob& job);
Result<PrepareJob> DecodePrepareJob(std::string_view payload);
std::string EncodePrepareReply(const PrepareReply& reply);
Result<PrepareReply> DecodePrepareReply(std::string_view payload);
std::string EncodeTimeJob(const TimeJob& job);
Result<TimeJob> DecodeTimeJob(std::string_view payload);
std::string EncodeTimeReply(const TimeReply& reply);
Result<TimeReply> DecodeTimeReply(std::string_view payload);

}  // namespace hone::measure
