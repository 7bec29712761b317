#include "client/tune_progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace hone::client {
namespace {

using nlohmann::ordered_json;
using search::TaskSearch;
using search::Tuner;
using search::TuningTask;

constexpr double kTerminalPause = 0.5, kPlainPause = 10;  // seconds
constexpr size_t kFewestRows = 4;

double TaskNs(const TuneView& view, int i) {
  return view.session.tuner().task(i).count * view.session.tuner().search(i).best_ns();
}

std::vector<int> ByTime(const TuneView& view) {
  std::vector<int> order;
  for (int i = 0; i < view.session.tuner().num_tasks(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return TaskNs(view, a) > TaskNs(view, b); });
  return order;
}

std::string FailuresText(const std::map<measure::Outcome, int64_t>& failures) {
  std::string text;
  for (const auto& [outcome, n] : failures)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, measure::ToString(outcome));
  return text;
}

std::string TaskLine(const TuneView& view, int i) {
  const TaskSearch& s = view.session.tuner().search(i);
  const TuningTask& t = view.session.tuner().task(i);
  const double bound = view.roofline_ns[static_cast<size_t>(i)];
  const bool known = s.best_ns() > 0;
  const std::string gain = known && s.default_ns() > 0
                               ? fmt::format("{:.2f} x", s.default_ns() / s.best_ns())
                               : std::string("-");
  const std::string share =
      known && bound > 0 ? fmt::format("{:.0f} %", 100 * bound / s.best_ns()) : std::string("-");
  const std::string failures = FailuresText(s.failures());
  return fmt::format("{:>11} {:>9} {:>9} {:>6} {:>7}  x{:<3} {}{}\n",
                     known ? fmt::format("{:.1f}", s.best_ns() * 1e-3) : std::string("-"), gain,
                     share, s.trials(), s.space().admitted(), t.count, t.name.substr(0, 40),
                     failures.empty() ? "" : "  (" + failures + ")");
}

/// Rows of the terminal that the table may take.
size_t TerminalRows() {
  winsize size = {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return 20;
  return std::max<size_t>(kFewestRows, size.ws_row > 5 ? size.ws_row - 5U : 0U);
}

std::string ModelText(const TuneView& view) {
  const Tuner& t = view.session.tuner();
  if (t.TotalNs(true) <= 0) return "nothing measured yet";
  std::string text = fmt::format("kernels {:.3f} ms by default, {:.3f} ms now",
                                 t.TotalNs(false) * 1e-6, t.TotalNs(true) * 1e-6);
  if (view.model.default_ns > 0) {
    text += fmt::format("; model {:.3f} ms measured by default, {:.3f} ms predicted now",
                        view.model.default_ns * 1e-6, PredictedNs(view) * 1e-6);
  }
  return text;
}

std::string StateLine(const TuneView& view) {
  const double used = view.session.ElapsedSeconds();
  const double left = SecondsLeft(view.budget, used, view.wall_clock);
  const std::string failures = FailuresText(view.session.failures());
  std::string text = Duration(used);
  if (left >= 0) text += fmt::format(", {} left", Duration(left));
  text += fmt::format("  {} candidates", view.session.tuner().answered());
  if (view.budget.trials > 0) text += fmt::format(" of {}", view.budget.trials);
  if (!failures.empty()) text += " (" + failures + ")";
  if (const double paused = static_cast<double>(view.measurer.paused_ns()) * 1e-9; paused >= 0.5)
    text += fmt::format(", waited {:.1f} s for other programs", paused);
  return text + "; " + ModelText(view) + "\n";
}

ordered_json TaskJson(const TuneView& view, int i) {
  const TaskSearch& s = view.session.tuner().search(i);
  const TuningTask& t = view.session.tuner().task(i);
  const search::TaskVerdict& v = view.session.verdicts()[static_cast<size_t>(i)];
  const double bound = view.roofline_ns[static_cast<size_t>(i)];
  ordered_json failures = ordered_json::object();
  for (const auto& [outcome, n] : s.failures())
    failures[std::string(measure::ToString(outcome))] = n;
  ordered_json object = {{"workload", t.hash.ToHex()},
                         {"name", t.name},
                         {"count", t.count},
                         {"default_us", s.default_ns() * 1e-3},
                         {"best_us", s.best_ns() * 1e-3},
                         {"roofline_share", nullptr},
                         {"trials", s.trials()},
                         {"space", s.space().admitted()},
                         {"failures", failures},
                         {"compared", v.compared},
                         {"replaced", v.replaced},
                         {"put_back", v.put_back}};
  if (bound > 0 && s.best_ns() > 0) object["roofline_share"] = bound / s.best_ns();
  return object;
}

ordered_json ProposersJson(const Tuner& tuner) {
  std::map<search::Proposer, TaskSearch::ProposerCount> sums;
  for (int i = 0; i < tuner.num_tasks(); ++i) {
    for (const auto& [p, c] : tuner.search(i).counts()) {
      sums[p].candidates += c.candidates;
      sums[p].wins += c.wins;
    }
  }
  ordered_json object = ordered_json::object();
  for (int i = 0; i < search::kNumProposers; ++i) {
    const auto p = static_cast<search::Proposer>(i);
    object[std::string(search::ProposerName(p))] = {{"candidates", sums[p].candidates},
                                                    {"wins", sums[p].wins}};
  }
  return object;
}

ordered_json ModelJson(const TuneView& view) {
  const ModelVerdict& m = view.model;
  ordered_json object = {{"default_us", nullptr},  {"predicted_us", nullptr},
                         {"tuned_us", nullptr},    {"ratio", nullptr},
                         {"ratio_low", nullptr},   {"ratio_high", nullptr},
                         {"rounds", m.rounds},     {"noisy_cpus", m.noisy_cpus},
                         {"put_back", m.put_back}, {"skipped", nullptr}};
  if (m.default_ns > 0) {
    object["default_us"] = m.default_ns * 1e-3;
    object["predicted_us"] = PredictedNs(view) * 1e-3;
  }
  if (m.tuned_ns > 0) {
    object["tuned_us"] = m.tuned_ns * 1e-3;
    object["ratio"] = m.ratio;
    object["ratio_low"] = m.ratio_low;
    object["ratio_high"] = m.ratio_high;
  }
  if (!m.skipped.empty()) object["skipped"] = m.skipped;
  return object;
}

}  // namespace

double PredictedNs(const TuneView& view) {
  if (view.model.default_ns <= 0) return 0;
  const Tuner& t = view.session.tuner();
  // Alone, on a busy machine, kernels may seem to take longer than the model that has them all.
  const double scale = std::min(1.0, view.model.default_ns / std::max(1.0, t.TotalNs(false)));
  return view.model.default_ns - scale * (t.TotalNs(false) - t.TotalNs(true));
}

void TuneProgress::Show(const TuneView& view) {
  const double now = view.session.ElapsedSeconds();
  const bool terminal = context_.environment.error_is_terminal;
  if (now - last_ < (terminal ? kTerminalPause : kPlainPause)) return;
  last_ = now;
  std::string text;
  if (terminal) {
    if (lines_ > 0) text += fmt::format("\x1b[{}F\x1b[J", lines_);
    text += TaskTable(view, TerminalRows());
  }
  text += StateLine(view);
  lines_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  context_.err << text << std::flush;
}

std::string TaskTable(const TuneView& view, size_t most_rows) {
  std::string text = fmt::format("{:>11} {:>9} {:>9} {:>6} {:>7}  kernel\n", "best us", "gain",
                                 "roofline", "trials", "space");
  const std::vector<int> order = ByTime(view);
  const size_t shown = order.size() <= most_rows ? order.size() : most_rows - 1;
  for (size_t k = 0; k < shown; ++k) text += TaskLine(view, order[k]);
  if (shown < order.size()) {
    double rest = 0;
    for (size_t k = shown; k < order.size(); ++k) rest += TaskNs(view, order[k]);
    text += fmt::format("{:>11.1f} {:>35}  {} shorter kernels\n", rest * 1e-3, "",
                        order.size() - shown);
  }
  return text;
}

std::string TuneText(const TuneView& view, const std::string& log) {
  const Tuner& t = view.session.tuner();
  const ModelVerdict& m = view.model;
  std::string text = TaskTable(view, static_cast<size_t>(t.num_tasks()) + 1);
  text += fmt::format(
      "{}: {} candidates in {}; kernels {:.3f} ms by default, {:.3f} ms tuned ({:.2f} x)\n",
      search::StopReasonName(view.session.reason()), t.answered(),
      Duration(view.session.ElapsedSeconds()), t.TotalNs(false) * 1e-6, t.TotalNs(true) * 1e-6,
      t.TotalNs(false) / std::max(1.0, t.TotalNs(true)));
  for (int i = 0; i < t.num_tasks(); ++i) {
    if (view.session.verdicts()[static_cast<size_t>(i)].put_back) {
      text += fmt::format("put back: {} ({}) is faster by default in the model\n", t.task(i).name,
                          t.task(i).hash.ToHex().substr(0, 12));
    }
  }
  if (m.tuned_ns > 0) {
    text += fmt::format(
        "model end to end, in turns: {:.3f} ms by default -> {:.3f} ms tuned ({:.2f} x, interval "
        "{:.2f} to {:.2f}, {} rounds; {:.3f} ms were predicted)\n",
        m.default_ns * 1e-6, m.tuned_ns * 1e-6, m.ratio, m.ratio_low, m.ratio_high, m.rounds,
        PredictedNs(view) * 1e-6);
    if (m.noisy_cpus > 0) {
      text += fmt::format(
          "that is noisy: other programs used {:.1f} CPUs meanwhile, so nothing was put back or "
          "confirmed; the same command on a quiet machine decides\n",
          m.noisy_cpus);
    }
  } else if (!m.skipped.empty()) {
    text += fmt::format("the comparison of whole models was skipped: {}\n", m.skipped);
  }
  return text + fmt::format("log {}, session {}\n", log, view.session.id().ToHex());
}

std::string TuneJson(const TuneView& view, const std::string& log) {
  const Tuner& t = view.session.tuner();
  ordered_json tasks = ordered_json::array(), correlations = ordered_json::array();
  for (int i = 0; i < t.num_tasks(); ++i) {
    tasks.push_back(TaskJson(view, i));
    if (const auto r = t.search(i).RankCorrelationOnRandom())
      correlations.push_back({{"workload", t.task(i).hash.ToHex()}, {"spearman", *r}});
  }
  ordered_json failures = ordered_json::object();
  for (const auto& [outcome, n] : view.session.failures())
    failures[std::string(measure::ToString(outcome))] = n;
  const ordered_json object = {
      {"log", log},
      {"session", view.session.id().ToHex()},
      {"resumed", view.session.resumed()},
      {"reason", std::string(search::StopReasonName(view.session.reason()))},
      {"seconds", view.session.ElapsedSeconds()},
      {"waited_seconds", static_cast<double>(view.measurer.paused_ns()) * 1e-9},
      {"attempts", t.attempts()},
      {"answered", t.answered()},
      {"default_us", t.TotalNs(false) * 1e-3},
      {"best_us", t.TotalNs(true) * 1e-3},
      {"model", ModelJson(view)},
      {"failures", failures},
      {"proposers", ProposersJson(t)},
      {"rank_correlation_on_random", correlations},
      {"tasks", tasks}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hone::client
