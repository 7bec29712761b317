#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/core/check.h"
#include "schedule/trace.h"
#include "schedule/trace_writer.h"

namespace hone::schedule {

class SketchRule;

/// The numbers of one point: one for each column of its Sketch, table after table. What a Sketch
/// has no column for is 0.
class Values {
 public:
  static constexpr size_t kMost = 12;  ///< columns of a Sketch

  Values() = default;
  Values(std::initializer_list<int64_t> numbers) {
    for (const int64_t n : numbers) Add(n);
  }
  /// So many numbers, all 0.
  static Values OfSize(size_t size) {
    HONE_DCHECK(size <= kMost);
    Values values;
    values.size_ = size;
    return values;
  }
  int64_t operator[](size_t column) const { return numbers_[column]; }
  int64_t& operator[](size_t column) { return numbers_[column]; }
  size_t size() const { return size_; }
  void Add(int64_t number) {
    HONE_DCHECK(size_ < kMost);
    numbers_[size_++] = number;
  }
  bool operator==(const Values&) const = default;

 private:
  std::array<int64_t, kMost> numbers_{};
  size_t size_ = 0;
};

/// One Decision: every row is a choice of values for the columns. Sizes depend on the Sketch alone.
struct DecisionTable {
  std::string name;                  ///< "tile", "order", …
  std::vector<std::string> columns;  ///< what the values mean, e.g. rows, vectors
  std::vector<std::vector<int64_t>> rows;
};

/// What a rule found out about a Sketch and wants to know again of each of its points; each rule
/// has its own.
struct SketchForm {
  virtual ~SketchForm() = default;
};

/// A Trace whose structure is fixed: padding form, algorithm and places; its tables fill in the
/// numbers.
struct Sketch {
  std::string name;  ///< "direct/peeled", "winograd4/one_phase", "rows", …
  std::vector<DecisionTable> tables;
  const SketchRule* rule = nullptr;  ///< lives as long as the program
  std::shared_ptr<const SketchForm> form;

  uint64_t Product() const;
  /// Those of all tables, in their order: the places of Values.
  std::vector<std::string> Columns() const;
  /// The row of each table with these values, the first of equal ones; nothing where a table has
  /// none.
  std::optional<std::vector<int>> RowsOf(const Values& values) const;
};

/// A way to schedule Workloads of some structure: it owns the numbers of its Sketches, from the
/// tables to the Trace and back. One class in one file; the registry of a kind of Target lists it
/// (cpu/cpu_rules.h). Objects have no state: thread-safe.
class SketchRule {
 public:
  virtual ~SketchRule() = default;

  /// Writes the Trace of one point. `writer` is fresh, of the Sketch's Workload. Values need not
  /// stand in the tables. InvalidArgument when they do not fit the Workload.
  virtual absl::Status Emit(const Sketch& sketch, const Values& values,
                            TraceWriter& writer) const = 0;
  /// The values from which Emit writes this Trace; of several the ones that stand first in the
  /// tables. For a Trace that no values give it returns any values, or InvalidArgument: callers
  /// that must be sure emit the values and compare.
  virtual absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const = 0;
  /// Why a point is not worth lowering: closed forms over the values. Empty: it is admitted.
  virtual std::string_view Refusal(const Sketch& sketch, const Values& values) const;
  /// The values of the default schedule, where it is one of this Sketch. They need not stand in the
  /// tables.
  virtual std::optional<Values> Default(const Sketch& sketch) const;
};

}  // namespace hone::schedule
