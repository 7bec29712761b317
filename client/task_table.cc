#include "client/task_table.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::client {
namespace {

constexpr size_t kShortestName = 8;

std::vector<std::string> FailureParts(const std::map<measure::Outcome, int64_t>& failures) {
  std::vector<std::string> parts;
  for (const auto& [outcome, n] : failures)
    parts.push_back(fmt::format("{} {}", n, measure::ToString(outcome)));
  return parts;
}

double ModelNs(const TaskRow& row) { return row.count * row.best_ns; }

std::string Header(bool space) {
  return fmt::format("{:>11} {:>9} {:>9} {:>6}{}  kernel", "best us", "gain", "roofline", "trials",
                     space ? fmt::format(" {:>7}", "space") : "");
}

std::string TaskLine(const TaskRow& row, bool space, size_t cells) {
  const bool known = row.best_ns > 0;
  const std::string best = known ? fmt::format("{:.1f}", row.best_ns * 1e-3) : std::string("-");
  // One measurement has a ratio to itself.
  const bool ratio = row.compared || row.default_ns == row.best_ns;
  const std::string gain = known && ratio && row.default_ns > 0
                               ? fmt::format("{:.2f} x", row.default_ns / row.best_ns)
                               : std::string("-");
  const std::string share = known && row.bound_ns > 0
                                ? fmt::format("{:.0f} %", 100 * row.bound_ns / row.best_ns)
                                : std::string("-");
  std::string failures = fmt::format("{}", fmt::join(FailureParts(row.failures), ", "));
  if (!failures.empty()) failures = "  (" + failures + ")";
  std::string line = fmt::format("{:>11} {:>9} {:>9} {:>6}", best, gain, share, row.trials);
  if (space) line += fmt::format(" {:>7}", row.space);
  line += fmt::format("  {:<4} ", row.count > 0 ? fmt::format("x{}", row.count) : "-");
  // A name is known by its beginning; what failed is not.
  const size_t used = line.size() + failures.size();
  const size_t room = cells > used ? cells - used : 0;
  return line + CutToWords(row.name, std::max(room, kShortestName)) + failures;
}

}  // namespace

bool TellsSpace(size_t cells) { return cells >= 100; }

std::vector<std::string> TaskTable(std::vector<TaskRow> rows, const TableForm& form) {
  std::ranges::stable_sort(rows, std::greater<>(), ModelNs);
  const bool space = TellsSpace(form.cells) &&
                     std::ranges::all_of(rows, [](const TaskRow& row) { return row.space > 0; });
  std::vector<std::string> lines = {Header(space)};
  const size_t shown = rows.size() <= form.rows ? rows.size() : form.rows - 1;
  for (size_t k = 0; k < shown; ++k) lines.push_back(TaskLine(rows[k], space, form.cells));
  if (shown < rows.size()) {
    double rest = 0;
    for (size_t k = shown; k < rows.size(); ++k) rest += ModelNs(rows[k]);
    lines.push_back(fmt::format("{:>11.1f} {:>{}}  {} shorter kernels", rest * 1e-3, "",
                                space ? 35 : 27, rows.size() - shown));
  }
  return lines;
}

std::vector<std::string> TuneState::FailedParts() const {
  std::vector<std::string> failed = FailureParts(failures);
  if (!failed.empty()) failed.front().insert(0, "failed: ");
  return failed;
}

std::string TuneState::Line() const {
  std::vector<std::string> all = parts;
  if (!failures.empty()) all.push_back(fmt::format("{}", fmt::join(FailedParts(), ", ")));
  return fmt::format("{}", fmt::join(all, "; "));
}

std::string ProgressText(const TuneBudget& budget, const TuneSoFar& so_far,
                         const WallClock& clock) {
  const TimeLeft left = TimeLeftOf(budget, so_far, clock);
  std::string text =
      fmt::format("{}, {}{} left  {} candidates", Duration(so_far.seconds),
                  left.estimated ? "about " : "", Duration(left.seconds), so_far.answered);
  if (budget.trials > 0) text += fmt::format(" of {}", budget.trials);
  return text;
}

std::string KernelsText(const std::vector<TaskRow>& rows) {
  double default_ns = 0, best_ns = 0;
  size_t known = 0, all = 0;
  bool defaults = true;
  for (const TaskRow& row : rows) {
    all += row.count > 0;
    if (row.best_ns <= 0 || row.count == 0) continue;
    ++known;
    defaults = defaults && row.default_ns > 0;
    default_ns += row.count * row.default_ns;
    best_ns += row.count * row.best_ns;
  }
  if (known == 0) return "nothing measured yet";
  const std::string by_default =
      defaults ? fmt::format("{:.3f} ms", default_ns * 1e-6) : std::string("-");
  std::string text =
      fmt::format("kernels {} by default, {:.3f} ms now", by_default, best_ns * 1e-6);
  if (known < all) text += fmt::format(" (sum of {} of {} kernels)", known, all);
  return text;
}

std::vector<std::string> LiveTable(std::vector<TaskRow> rows, const TuneState& state,
                                   const ScreenSize& screen) {
  const size_t cells = screen.LineCells();
  std::vector<std::string> below = PackIntoLines(state.parts, "; ", cells);
  const std::vector<std::string> failed = PackIntoLines(state.FailedParts(), ", ", cells);
  below.insert(below.end(), failed.begin(), failed.end());
  // The header, and the row where the cursor stands.
  const size_t others = below.size() + 2;
  std::vector<std::string> lines = TaskTable(
      std::move(rows), {.cells = cells, .rows = screen.rows > others ? screen.rows - others : 1});
  lines.insert(lines.end(), below.begin(), below.end());
  return lines;
}

}  // namespace hone::client
