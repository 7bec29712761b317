#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/accuracy_class.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/plan.h"
#include "schedule/trace.h"

namespace hone::schedule {

/// One Decision: every row is a choice of values for the columns. Sizes depend on the Sketch alone.
struct DecisionTable {
  std::string name;                  ///< "tile", "order", …
  std::vector<std::string> columns;  ///< what the values mean, e.g. rows, vectors
  std::vector<std::vector<int64_t>> rows;
};

/// A Trace whose structure is fixed: padding form, algorithm and places; its tables fill in the
/// numbers.
struct Sketch {
  std::string name;  ///< "direct/peeled", "winograd4/one_phase", "rows", …
  PlanChoice base;
  std::vector<DecisionTable> tables;

  /// The plan with these rows (one per table).
  PlanChoice Fill(const std::vector<int>& rows) const;
  uint64_t Product() const;
};

/// One point of a Space: a Sketch with every Decision made.
struct Candidate {
  int sketch = 0;
  std::vector<int> rows;
  bool operator==(const Candidate&) const = default;
};

/// Everything the search may choose for one Workload on one Target. Immutable; thread-safe to read.
class Space {
 public:
  /// Winograd F(4×4), whose rms error is about 8 × the direct one's, only where `accuracy` is not
  /// strict.
  Space(const ir::Workload& workload, const ir::Target& target, ir::AccuracyClass accuracy);

  /// A Space of these Sketches alone, for experiments and tests of searches. The default schedule
  /// is the point that has the nominal choice, else the first.
  Space(const ir::Workload& workload, const ir::Target& target, std::vector<Sketch> sketches);

  const ir::Workload& workload() const { return workload_; }
  const ir::Target& target() const { return target_; }
  const PlanForm& form() const { return form_; }
  const std::vector<Sketch>& sketches() const { return sketches_; }
  /// Points without and with the predicates of Admits.
  uint64_t product() const { return product_; }
  uint64_t admitted() const;
  /// 32 hex digits over Sketches and tables: an id means something only beside this.
  const std::string& hash() const { return hash_; }

  Candidate At(uint64_t id) const;  ///< id < product()
  uint64_t IdOf(const Candidate& c) const;
  PlanChoice ChoiceOf(uint64_t id) const;
  /// Predicates on table columns: rows that share an L1 set, scratch against L2, emitted code.
  /// (Tiles that want more registers than there are do not stand in the tables.)
  bool Admits(uint64_t id) const;
  /// The default schedule's point.
  uint64_t DefaultId() const { return default_id_; }
  absl::StatusOr<Trace> TraceOf(uint64_t id) const;
  static constexpr uint64_t kMostLocated = 1 << 18;
  /// The point whose Trace this is; nothing when no admitted point has it, or the Space has more
  /// than kMostLocated points (each would be lowered to its Trace).
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
  void AddTileSketches(ir::AccuracyClass accuracy);
  void AddWinograd(int m);
  void Finish();
  void FindDefault();

  /// A table as ChoiceOf wants it: which value of a PlanChoice a column is, rows one after another.
  struct FlatTable {
    uint64_t rows = 0;
    std::vector<uint8_t> columns;
    std::vector<int64_t> values;
  };

  ir::Workload workload_;
  ir::Target target_;
  PlanForm form_;
  std::vector<Sketch> sketches_;
  std::vector<std::vector<FlatTable>> flat_;  ///< by sketch
  std::vector<uint64_t> first_id_;
  uint64_t product_ = 0;
  uint64_t default_id_ = 0;
  int64_t most_rows_ = std::numeric_limits<int64_t>::max();  ///< of a tile, for the L1's sets
  std::string hash_;
};

}  // namespace hone::schedule
