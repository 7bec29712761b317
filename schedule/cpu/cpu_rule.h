#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "ir/accuracy_class.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/cpu/rules.h"
#include "schedule/sketch.h"
#include "schedule/structure.h"

namespace hone::schedule {

/// What kind of loop nest a cluster is.
enum class ClusterKind : uint8_t { kTile, kRows, kMap, kScan };
ClusterKind KindOf(const TraceWriter& writer, const Cluster& cluster);
/// The heaviest of the clusters, by points and operations.
size_t Heaviest(const TraceWriter& writer, const std::vector<Cluster>& clusters);

/// A Workload and its heaviest cluster, found once for all rules. Immutable.
struct CpuSubject {
  /// `writer` is of the Workload, with its clusters found.
  CpuSubject(const TraceWriter& writer, const std::vector<Cluster>& clusters,
             const ir::Workload& workload, const ir::Target& target, ir::AccuracyClass accuracy);

  ir::Workload workload;
  ir::Target target;
  ir::AccuracyClass accuracy;
  int input = -1;  ///< FindInputStage
  ClusterKind kind = ClusterKind::kMap;
  Cluster cluster;  ///< the heaviest; owner -1: there is none
  int lanes = 16;   ///< of a vector of its results
  /// kTile: its register tile; kScan: that of its product. Else, and for a scan without one,
  /// the anchor is -1.
  TileForm tile;
  TileChoice nominal;  ///< of that tile; rows: so many at a time

  /// Work of the tile's anchor, padding included, where the kind is kTile; else `points` is the
  /// arithmetic of all Stages and the others are 1.
  struct Work {
    double points = 0, reduce = 1;
    double rows = 1, columns = 1, outer = 1;
    double channel = 1;  ///< innermost reduce extent
    double multiply_adds = 0;
    double input_bytes = 0, constant_bytes = 0, output_bytes = 0;
    double row_stride_bytes = 0;
    bool contraction = false;
  } work;
};

/// Every Sketch of a CpuRule has one.
struct CpuForm : SketchForm {
  explicit CpuForm(std::shared_ptr<const CpuSubject> s) : subject(std::move(s)) {}
  std::shared_ptr<const CpuSubject> subject;
};
inline const CpuSubject& SubjectOf(const Sketch& sketch) {
  return *static_cast<const CpuForm&>(*sketch.form).subject;
}

/// What a point does, as closed forms over its values: the cost model makes features and times of
/// it (costmodel/features.h). A rule sets what it knows; what it says nothing of stays.
struct CpuFacts {
  // What is decided. A rule with decisions of another kind adds them here, to the features and to
  // KindVersions::feature_schema.
  int64_t rows = 1, vectors = 1;  ///< register tile; of rows the number taken at a time
  bool columns_outside = false;
  bool ahead = false;        ///< the next panel is fetched while one is worked on
  int64_t reduce_block = 0;  ///< iterations of the innermost reduce axis per pass; 0: all
  Padding padding = Padding::kPeeled;
  int winograd = 0;  ///< F(m×m, 3×3)
  bool one_phase = false;
  int64_t tile_rows = 2;
  int64_t partial_vectors = 4;
  int64_t unroll = 1;

  /// The product or window that the register tile computes. Not `tiled`: one pass over the data.
  bool tiled = false;
  double work_rows = 1, work_outer = 1, work_reduce = 1, multiply_adds = 0;
  double shares = 0;    ///< that threads can take; 0: those of the outer loop
  double products = 1;  ///< times that constants are read: of a Winograd tile, (m + 2)²
  /// Share of their peak that products of tiles reach; 0: vectors multiply.
  double tile_efficiency = 0;
  double stall = 1;  ///< of one pass: how much longer it takes for waiting
  // Copies and transforms beside it.
  double l2_bytes = 0, l3_bytes = 0, operations = 0;
  int phases = 0, barriers = 0;
};

/// A rule for CPUs.
class CpuRule : public SketchRule {
 public:
  /// The structures that the Workload can have by this rule. `writer` has inlined what is better
  /// inlined: the subject's cluster stands there. Sketches have all but `rule`.
  virtual std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                                       const TraceWriter& writer) const = 0;
  virtual void Describe(const Sketch& sketch, const Values& values, CpuFacts* facts) const = 0;
};

/// Which Stage is kept from being inlined, which one must be, and which cluster is left to `main`
/// of EmitClusters, by its owner; -1: none.
struct Inlining {
  int keep = -1, force = -1, skip = -1;
};
/// Schedules every cluster: the heaviest by `main`, the others nominally.
absl::Status EmitClusters(TraceWriter& writer, const Inlining& inlining, const ir::Target& target,
                          const std::function<void(const Cluster&)>& main);
/// The cluster that EmitClusters would leave to `main`; `writer` is fresh and gets the inlining.
/// InvalidArgument where there is none.
absl::StatusOr<Cluster> MainCluster(TraceWriter& writer, const Inlining& inlining);
/// As a cluster is scheduled of which nothing is decided.
void ScheduleNominally(TraceWriter& writer, const Cluster& cluster, const ir::Target& target);
/// The register tile that a cluster has nominally, or the number of its rows taken at a time.
TileChoice NominalTileOf(const TraceWriter& writer, const Cluster& cluster,
                         const ir::Target& target);

/// Sets what the register tile of the subject's cluster does, computed directly.
void DescribeTile(const CpuSubject& subject, CpuFacts* facts);
/// One pass over the data of the subject.
void DescribePass(const CpuSubject& subject, CpuFacts* facts);

}  // namespace hone::schedule
