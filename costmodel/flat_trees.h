#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "costmodel/feature_rows.h"

namespace hone::costmodel {

/// Rows of features turned for FlatTrees: groups of kGroup rows, a column of a group in a row.
/// Missing values are NaN.
class FeatureColumns {
 public:
  static constexpr size_t kGroup = 64;

  /// Those of rows [begin, begin + count).
  FeatureColumns(const FeatureRows& rows, size_t begin, size_t count);

  size_t rows() const { return rows_; }
  size_t groups() const { return (rows_ + kGroup - 1) / kGroup; }
  /// [columns][kGroup]; the last group repeats the last row.
  const float* Group(size_t g) const { return values_.data() + g * least_.size() * kGroup; }
  /// Over all rows. Without meaning where a value is missing.
  float least(int column) const { return least_[static_cast<size_t>(column)]; }
  float most(int column) const { return most_[static_cast<size_t>(column)]; }
  bool missing() const { return missing_; }

 private:
  size_t rows_;
  std::vector<float> values_;
  std::vector<float> least_, most_;
  bool missing_ = false;
};

/// The trees of one booster as flat arrays, walked without branches on the data: many rows of one
/// Space share most columns, so a batch first folds away every split that its columns' ranges
/// decide, then evaluates what is left bottom up for kGroup rows at a time with vector compares and
/// selects. Gives the very sums of XGBoost: the same comparisons, and the leaves added in the same
/// order. Immutable, thread-safe to read.
class FlatTrees {
 public:
  /// Reads XGBoost's text dumps, one for each tree in order, of rows of so many columns.
  /// InvalidArgument where a line is not understood, a child is missing or a tree is deeper than
  /// kMostDepth.
  static absl::StatusOr<FlatTrees> Parse(std::span<const char* const> dumps, size_t columns);
  static constexpr int kMostDepth = 16;

  /// The sum of the leaves of one row; a missing value takes the split's default direction.
  float PredictRow(std::span<const float> row) const;
  /// The same for every row of `columns` (which lacks none) into `sums`, one for each row.
  void Predict(const FeatureColumns& columns, std::span<float> sums) const;

  size_t num_trees() const { return roots_.size(); }

 private:
  struct Node {
    float value = 0;       ///< threshold of a split, sum of a leaf
    int16_t feature = -1;  ///< -1: a leaf
    bool missing_left = false;
    int32_t left = -1, right = -1;  ///< in nodes_; left where feature < value
  };
  /// A step of the evaluation of folded trees; operands that are no leaves lie on a stack.
  struct Step {
    enum class Kind : uint8_t { kLeaves, kLeftLeaf, kRightLeaf, kNoLeaf, kAddTop, kAddLeaf };
    float threshold = 0, left = 0, right = 0;
    int16_t feature = 0;
    Kind kind = Kind::kLeaves;
  };

  absl::Status ParseTree(std::string_view dump, size_t columns);
  /// Where a batch's columns lead from here without a choice.
  int32_t Skip(int32_t node, const FeatureColumns& columns) const;
  void Fold(int32_t node, const FeatureColumns& columns, std::vector<Step>* steps) const;
  static inline void RunSteps(std::span<const Step> steps, const float* group, float* sums);
  static void RunWide(std::span<const Step> steps, const float* group, float* sums);
  static void RunAvx2(std::span<const Step> steps, const float* group, float* sums);
  static void RunAny(std::span<const Step> steps, const float* group, float* sums);

  std::vector<Node> nodes_;
  std::vector<int32_t> roots_;
};

}  // namespace hone::costmodel
