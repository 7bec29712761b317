#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ir/parse_lexer.h"
#include "ir/workload.h"
#include "ir/zero_pattern.h"

namespace hone::ir {

/// What is left of a matrix of weights where pruning made the others zero. It is a constant: sums
/// run along one dimension (the terms), columns along another, all others have one element. A panel
/// is `width` neighbouring columns, the last one perhaps fewer; a group is what one term has in one
/// panel, and it is kept where it holds a value other than zero.
///
/// It belongs to the Workload, since schedules are chosen by it: shapes of packed copies follow
/// from it, so that weights that keep more than it says would be cut. The numbers are coarse, so
/// that layers that are pruned alike are one task.
struct KeptPanels {
  static constexpr int kSteps = ZeroPattern::kSteps;  ///< of a share
  static constexpr int kParts = ZeroPattern::kParts;  ///< of all panels
  static constexpr int64_t kWidth = 16;               ///< of the panels that are counted

  int dim = -1;       ///< of the columns
  int64_t width = 0;  ///< columns of a panel
  /// Panels in the order of how many groups they keep: most that one of each eighth keeps, in 32nds
  /// of the terms, rounded up. So no panel keeps more than the last says.
  std::array<int, kParts> groups{};
  /// Most values other than zero in a panel, in 32nds of its values, rounded up.
  int values = 0;

  bool operator==(const KeptPanels&) const = default;
};

/// The fact that stands at a constant; nothing where none does (dense weights have none).
/// It lies in Tensor::immediate, which constants do not use otherwise.
std::optional<KeptPanels> PanelsOf(const Tensor& constant);
void SetPanels(Tensor& constant, const KeptPanels& panels);

/// Extents and strides (in elements) of the matrix whose columns lie along `dim`; nothing where
/// more than one other dimension has several elements.
struct MatrixForm {
  int64_t columns = 1, terms = 1;
  int64_t column_stride = 1, term_stride = 1;
};
std::optional<MatrixForm> MatrixOf(const Tensor& tensor, int dim);

/// Counts what a matrix of the form keeps, in panels of KeptPanels::kWidth columns.
KeptPanels CountPanels(const MatrixForm& matrix, int dim, std::span<const float> values);

/// Zeros as weights of which this is stated may have them; a pattern without columns where nothing
/// is.
ZeroPattern ZerosOf(const Tensor& constant);

/// Terms that a panel keeps at most.
int64_t MostTerms(const KeptPanels& panels, const MatrixForm& matrix);
/// The mean share of groups that are kept, as the eighths say it: at least the true one.
double MeanKept(const KeptPanels& panels);
/// The share of all products that are to be computed where zeros are left out as well as can be:
/// about, for estimates.
double LikelyKept(const KeptPanels& panels);
/// A share that no schedule does with less of: what is faster cannot be true. (The panel with most
/// values is taken to have at most four times the mean.)
double LeastKept(const KeptPanels& panels);

/// "panels(1,16,[6,6,6,6,7,7,7,8],8)": dimension, width, the eighths, values.
std::string ToText(const KeptPanels& panels);
/// Reads what follows the word "panels"; false after a failure.
bool ParsePanels(ParseLexer& lexer, Tensor* constant);
/// What is wrong with the fact at this constant; empty: nothing, or there is none.
std::string FaultOfPanels(const Tensor& constant);

}  // namespace hone::ir
