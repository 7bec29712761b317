#pragma once

/// Every version number of Hone, and the only place where one is written. A number goes up when the
/// thing it names changes in a way that an older or newer Hone must notice.
namespace hone {

/// The program's version (semantic versioning); equal to project(VERSION) in CMakeLists.txt.
inline constexpr char kProgramVersion[] = "0.1.0";

/// Format of `model.hone` that is written, and the oldest one that a loader reads.
inline constexpr int kPackageFormatVersion = 7, kOldestPackageFormatVersion = 2;

/// What a package may ask of the runtime: HoneCall, the extern routines. A package names the least
/// it needs.
inline constexpr int kRuntimeVersion = 1;

/// Schema of the tuning log; migrations go forward only, a newer file is refused.
inline constexpr int kSchemaVersion = 4;

/// Grammar and meaning of the Trace text.
inline constexpr int kTraceTextVersion = 1;

/// What the builder emits for one (Workload, Trace, Target, Binding). Kept by hand: the golden test
/// over the code of fixed Traces fails until it is raised. LLVM's major.minor is added to it.
inline constexpr int kBuilderVersion = 10;

/// What each kind of device counts for itself; ir/kind_facts.h gives those of a target.
struct KindVersions {
  /// How a candidate is measured; part of the log's key.
  int measurement_policy = 1;
  /// Which facts of a machine make its device class, and how they are written; records of another
  /// version's class are of another device. docs/formats/log.md
  int device_class = 1;
  /// Columns of the cost model's features, and what the trees' scores are added to; a stored model
  /// of another version is not used.
  int feature_schema = 1;
  /// The analytic model; predictions of another version are of another device class.
  int analytic_model = 1;
};
/// In the place of KindVersions::measurement_policy: nobody measured, the analytic model predicted.
inline constexpr int kNotMeasured = 0;
inline constexpr KindVersions kCpuVersions = {
    .measurement_policy = 1, .device_class = 1, .feature_schema = 3};
inline constexpr KindVersions kCudaVersions = {
    .measurement_policy = 1, .device_class = 1, .feature_schema = 4, .analytic_model = 3};

/// What the oracle's kept values are of: how inputs are made up, and the points.
inline constexpr int kOracleVersion = 1;

/// Messages between client, server and worker.
inline constexpr int kProtocolVersion = 1;

}  // namespace hone
