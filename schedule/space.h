#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/accuracy_class.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/sketch.h"
#include "schedule/trace.h"

namespace hone::schedule {

/// One point of a Space: a Sketch with every Decision made.
struct Candidate {
  int sketch = 0;
  std::vector<int> rows;
  bool operator==(const Candidate&) const = default;
};

/// Everything the search may choose for one Workload on one Target. Immutable; thread-safe to read.
class Space {
 public:
  /// All Sketches of the rules for this kind of Target. What is less exact stands in it only where
  /// `accuracy` is not strict.
  Space(const ir::Workload& workload, const ir::Target& target, ir::AccuracyClass accuracy);

  /// A Space of these Sketches alone, for experiments and tests of searches. The default schedule
  /// is that of the first Sketch that has one, else the first point.
  Space(const ir::Workload& workload, const ir::Target& target, std::vector<Sketch> sketches);

  const ir::Workload& workload() const { return workload_; }
  const ir::Target& target() const { return target_; }
  const std::vector<Sketch>& sketches() const { return sketches_; }
  /// Points without and with the predicates of Admits.
  uint64_t product() const { return product_; }
  uint64_t admitted() const;
  /// 32 hex digits over Sketches and tables: an id means something only beside this.
  const std::string& hash() const { return hash_; }

  Candidate At(uint64_t id) const;  ///< id < product()
  uint64_t IdOf(const Candidate& c) const;
  /// A point's Sketch and its values, without an allocation.
  struct Point {
    const Sketch& sketch;
    Values values;
  };
  Point PointOf(uint64_t id) const;
  /// The value of a point's column of this name; 0 where its Sketch has none.
  int64_t ValueOf(uint64_t id, std::string_view column) const;
  /// Whether the rule refuses nothing of it, or it is the default schedule: predicates on columns
  /// such as rows that share an L1 set, scratch against L2, emitted code. (Tiles that want more
  /// registers than there are do not stand in the tables.)
  bool Admits(uint64_t id) const;
  /// The default schedule's point.
  uint64_t DefaultId() const { return default_id_; }
  absl::StatusOr<Trace> TraceOf(uint64_t id) const;
  /// The Sketch and the values that TraceOf writes from, by name: "direct/peeled rows=6 vectors=2".
  std::string ValuesText(uint64_t id) const;
  /// The point whose Trace this is, by what the rules read in it: the default schedule, else the
  /// first of equal ones; nothing when no admitted point has it.
  std::optional<uint64_t> Locate(const std::string& trace_text) const;
  /// Rows one step from this one in its table: the rows beside it, and where rows have several
  /// columns those with one column's next smaller or larger value and the others as near as can be.
  std::vector<int> StepsOf(int sketch, int table, int row) const;
  /// Admitted points that differ from this one by one step in one table of the same Sketch.
  std::vector<uint64_t> Neighbours(uint64_t id) const;
  /// The admitted point with the nearest values in a Space of another Workload (transplant): same
  /// Sketch by name, rows by log distance; nothing when the Sketch does not exist here.
  std::optional<uint64_t> Nearest(const Space& other, uint64_t id) const;

 private:
  void Finish();
  void FindDefault();
  /// PointOf, but of the default schedule its own values where they stand beside the tables.
  Point EmittedPoint(uint64_t id) const;

  /// A table as PointOf wants it: rows one after another.
  struct FlatTable {
    uint64_t rows = 0, columns = 0;
    std::vector<int64_t> values;
  };

  ir::Workload workload_;
  ir::Target target_;
  std::vector<Sketch> sketches_;
  std::vector<std::vector<FlatTable>> flat_;  ///< by sketch
  std::vector<size_t> columns_;               ///< of all tables, by sketch
  std::vector<uint64_t> first_id_;
  uint64_t product_ = 0;
  uint64_t default_id_ = 0;
  int default_sketch_ = 0;
  /// Those of the default schedule, where they do not stand in the tables.
  std::optional<Values> default_values_;
  std::string hash_;
};

}  // namespace hone::schedule
