#include "ir/kept_panels.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hone::ir {
namespace {

// In Tensor::immediate: dimension, width, the eighths, values.
constexpr size_t kNumbers = 3 + KeptPanels::kParts;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A count as a share of all, in steps, rounded up.
int StepsOf(int64_t count, int64_t all) {
  return static_cast<int>(CeilDiv(count * KeptPanels::kSteps, std::max<int64_t>(all, 1)));
}

/// What one panel keeps.
struct PanelCount {
  int64_t groups = 0, values = 0;
};

PanelCount CountPanel(const MatrixForm& m, std::span<const float> values, int64_t first,
                      int64_t end) {
  PanelCount count;
  for (int64_t k = 0; k < m.terms; ++k) {
    int64_t kept = 0;
    for (int64_t n = first; n < end; ++n)
      kept += values[static_cast<size_t>(k * m.term_stride + n * m.column_stride)] != 0 ? 1 : 0;
    count.groups += kept > 0 ? 1 : 0;
    count.values += kept;
  }
  return count;
}

}  // namespace

std::optional<KeptPanels> PanelsOf(const Tensor& constant) {
  if (constant.kind != TensorKind::kConstant || constant.immediate.size() != kNumbers)
    return std::nullopt;
  const std::vector<double>& numbers = constant.immediate;
  KeptPanels panels;
  panels.dim = static_cast<int>(numbers[0]);
  panels.width = static_cast<int64_t>(numbers[1]);
  for (size_t i = 0; i < panels.groups.size(); ++i)
    panels.groups[i] = static_cast<int>(numbers[2 + i]);
  panels.values = static_cast<int>(numbers[kNumbers - 1]);
  return panels;
}

void SetPanels(Tensor& constant, const KeptPanels& panels) {
  std::vector<double> numbers = {static_cast<double>(panels.dim),
                                 static_cast<double>(panels.width)};
  numbers.insert(numbers.end(), panels.groups.begin(), panels.groups.end());
  numbers.push_back(panels.values);
  constant.immediate = std::move(numbers);
}

std::optional<MatrixForm> MatrixOf(const Tensor& tensor, int dim) {
  if (dim < 0 || dim >= static_cast<int>(tensor.shape.size())) return std::nullopt;
  MatrixForm matrix;
  int64_t stride = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    const int64_t extent = tensor.shape[d];
    if (static_cast<int>(d) == dim) {
      matrix.columns = extent;
      matrix.column_stride = stride;
    } else if (extent > 1) {
      if (matrix.terms > 1) return std::nullopt;
      matrix.terms = extent;
      matrix.term_stride = stride;
    }
    stride *= extent;
  }
  return matrix;
}

KeptPanels CountPanels(const MatrixForm& m, int dim, std::span<const float> values) {
  KeptPanels panels{.dim = dim, .width = KeptPanels::kWidth};
  std::vector<int> groups;
  for (int64_t first = 0; first < m.columns; first += panels.width) {
    const int64_t end = std::min(first + panels.width, m.columns);
    const PanelCount count = CountPanel(m, values, first, end);
    groups.push_back(StepsOf(count.groups, m.terms));
    panels.values = std::max(panels.values, StepsOf(count.values, m.terms * (end - first)));
  }
  std::ranges::sort(groups);
  const auto all = static_cast<int64_t>(groups.size());
  for (int part = 0; part < KeptPanels::kParts; ++part) {
    const int64_t end = ZeroPattern::EndOf(part, all);
    panels.groups[static_cast<size_t>(part)] = groups[static_cast<size_t>(end - 1)];
  }
  return panels;
}

ZeroPattern ZerosOf(const Tensor& constant) {
  const std::optional<KeptPanels> panels = PanelsOf(constant);
  const std::optional<MatrixForm> matrix =
      panels ? MatrixOf(constant, panels->dim) : std::nullopt;
  if (!matrix) return {};
  ZeroPattern zeros{.columns = matrix->columns,
                    .terms = matrix->terms,
                    .column_stride = matrix->column_stride,
                    .term_stride = matrix->term_stride,
                    .width = panels->width,
                    .values = panels->values};
  std::ranges::copy(panels->groups, zeros.groups.begin());
  return zeros;
}

int64_t MostTerms(const KeptPanels& panels, const MatrixForm& matrix) {
  return matrix.terms * panels.groups.back() / KeptPanels::kSteps;
}

double MeanKept(const KeptPanels& panels) {
  const double all = std::accumulate(panels.groups.begin(), panels.groups.end(), 0.0);
  return all / (KeptPanels::kSteps * KeptPanels::kParts);
}

double LikelyKept(const KeptPanels& panels) {
  return std::min(MeanKept(panels), static_cast<double>(panels.values) / KeptPanels::kSteps);
}

double LeastKept(const KeptPanels& panels) {
  constexpr double kUneven = 4;
  double all = 0;
  for (size_t part = 1; part < panels.groups.size(); ++part)
    all += std::max(panels.groups[part - 1] - 1, 0);
  return std::min(all / (KeptPanels::kSteps * KeptPanels::kParts),
                  static_cast<double>(panels.values) / KeptPanels::kSteps / kUneven);
}

std::string ToText(const KeptPanels& panels) {
  std::string text =
      "panels(" + std::to_string(panels.dim) + "," + std::to_string(panels.width) + ",[";
  for (size_t i = 0; i < panels.groups.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(panels.groups[i]);
  return text + "]," + std::to_string(panels.values) + ")";
}

bool ParsePanels(ParseLexer& lexer, Tensor* constant) {
  KeptPanels panels;
  const auto number = [&](std::string_view what, auto* value) {
    constexpr int64_t kMost = int64_t{1} << 20;
    const std::optional<int64_t> read = lexer.Integer(what);
    if (!read) return false;
    if (*read < 0 || *read > kMost) return lexer.Fail("a number of 'panels' is out of range");
    *value = static_cast<std::remove_pointer_t<decltype(value)>>(*read);
    return true;
  };
  if (!lexer.Expect("(", "after 'panels'") || !number("a dimension", &panels.dim) ||
      !lexer.Expect(",", "after a dimension") || !number("a width", &panels.width) ||
      !lexer.Expect(",", "after a width") || !lexer.Expect("[", "before the eighths"))
    return false;
  for (size_t i = 0; i < panels.groups.size(); ++i) {
    if (i > 0 && !lexer.Expect(",", "between eighths")) return false;
    if (!number("an eighth", &panels.groups[i])) return false;
  }
  if (!lexer.Expect("]", "after the eighths") || !lexer.Expect(",", "after the eighths") ||
      !number("a share of values", &panels.values) || !lexer.Expect(")", "after 'panels'"))
    return false;
  SetPanels(*constant, panels);
  return true;
}

std::string FaultOfPanels(const Tensor& constant) {
  const std::optional<KeptPanels> panels = PanelsOf(constant);
  if (!panels) return "";
  if (constant.dtype != DType::kF32) return "has panels, but is no f32";
  if (!MatrixOf(constant, panels->dim)) return "has panels, but is no matrix of such columns";
  if (panels->width != KeptPanels::kWidth)
    return "has panels of " + std::to_string(panels->width) + " columns; there are those of " +
           std::to_string(KeptPanels::kWidth);
  if (!std::ranges::is_sorted(panels->groups)) return "has panels in no order";
  if (panels->groups.back() > KeptPanels::kSteps || panels->values > KeptPanels::kSteps)
    return "has panels that keep more than there is";
  return "";
}

}  // namespace hone::ir
