#pragma once

#include <cstddef>
#include <cstdint>

// Every bound of the farm's protocol. What is beyond is refused whole.
namespace hone::proto {

inline constexpr int64_t kMaxMessageBytes = int64_t{4} << 20;
/// Rows of a reply, in it; the rest of a message has room beside them.
inline constexpr int64_t kMaxRowsBytes = kMaxMessageBytes - (int64_t{64} << 10);
/// Texts of a job, in its Grant: beside them are up to 64 artifacts with their messages.
inline constexpr int64_t kMaxJobBytes = kMaxMessageBytes - (int64_t{512} << 10);
inline constexpr int64_t kMaxArtifactBytes = int64_t{64} << 20;  ///< of a builder
inline constexpr int64_t kMaxPackageBytes = int64_t{160} << 20;  ///< a model without constants
inline constexpr int64_t kMaxBuildBytes = int64_t{256} << 20;    ///< artifacts of one build lease
inline constexpr size_t kArtifactChunkBytes = size_t{1} << 20;
inline constexpr int64_t kArtifactCacheBytes = int64_t{512} << 20;  ///< that honed keeps
inline constexpr int64_t kMaxUnusedBytes = int64_t{1} << 30;  ///< uploads of unfinished builds
inline constexpr int64_t kShelfBytes = int64_t{256} << 20;    ///< that a run worker keeps
inline constexpr size_t kMaxWorkloads = 5000;                 ///< of a session
inline constexpr size_t kMaxTraceBytes = size_t{1} << 20;
inline constexpr size_t kMaxWorkloadBytes = size_t{1} << 20;
/// Stages of a workload: a kernel of a model has a dozen, and the work grows with their square.
inline constexpr size_t kMaxStages = 256;
inline constexpr size_t kMaxTraces = 63;                 ///< of a comparison
inline constexpr size_t kMaxArtifacts = kMaxTraces + 1;  ///< of a lease: the default's too
inline constexpr size_t kMaxSamples = 4096;              ///< of one trace
inline constexpr size_t kMaxKernels = 4096;              ///< of a model whose kernels are timed
inline constexpr size_t kMaxKernelSamples = size_t{1} << 17;  ///< of one model
inline constexpr size_t kMaxTextBytes = 4096;                 ///< messages, reasons, fingerprints
inline constexpr size_t kMaxNameBytes = 256;             ///< names, classes, targets, request ids
inline constexpr size_t kMaxLabels = 32;                 ///< each a name and a name
inline constexpr size_t kMaxListedReasonBytes = 512;     ///< of a session among others
inline constexpr size_t kMaxHeld = 4096;                 ///< leases of one worker
inline constexpr size_t kMaxDevices = 64;                ///< of one worker's name
inline constexpr int64_t kMaxCredit = int64_t{1} << 40;  ///< a running total
inline constexpr int64_t kMaxUnixMs = int64_t{9'200'000'000'000};  ///< in nanoseconds it fits
inline constexpr int kMaxRounds = 200;
inline constexpr int kMaxPriority = 100;
inline constexpr int kMaxListed = 1000;
inline constexpr int kMaxWatches = 64;                ///< of one caller, at once
inline constexpr int kMaxFound = 64;                  ///< records of one look-up
inline constexpr size_t kChunkBytes = 256 << 10;      ///< of streamed files
inline constexpr double kMaxRate = 1e15;              ///< of a probe, a second
inline constexpr double kMaxDotRate = 1e18;           ///< of narrow numbers and caches
inline constexpr size_t kMaxCaches = 8;               ///< of a probe
inline constexpr double kMaxNoise = 1e6;              ///< of a probe
inline constexpr double kMaxSeconds = 365.0 * 86400;  ///< of a session

}  // namespace hone::proto
