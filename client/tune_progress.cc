#include "client/tune_progress.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

#include "client/json_text.h"
#include "client/progress_json.h"
#include "client/task_table.h"
#include "client/verdict_text.h"
#include "search/illegal_sketch.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;
using search::TaskSearch;
using search::Tuner;
using search::TuningTask;

constexpr double kTerminalPause = 0.5, kJsonPause = 1, kPlainPause = 10;  // seconds

std::vector<TaskRow> RowsOf(const TuneView& view, bool tell_space) {
  std::vector<TaskRow> rows;
  for (int i = 0; i < view.session.tuner().num_tasks(); ++i) {
    const TaskSearch& s = view.session.tuner().search(i);
    const TuningTask& t = view.session.tuner().task(i);
    rows.push_back({.name = t.count > 0 ? t.name : t.name + " (the other way)",
                    .count = t.count,
                    .default_ns = s.default_ns(),
                    .best_ns = s.best_ns(),
                    .bound_ns = view.roofline_ns[static_cast<size_t>(i)],
                    .compared = view.session.verdicts()[static_cast<size_t>(i)].compared,
                    .trials = s.trials(),
                    .space = tell_space ? static_cast<int64_t>(s.space().admitted()) : 0,
                    .failures = s.failures()});
  }
  return rows;
}

double WaitedSeconds(const TuneView& view) {
  return view.measurer == nullptr ? 0 : static_cast<double>(view.measurer->paused_ns()) * 1e-9;
}

TuneState StateOf(const TuneView& view) {
  const Tuner& t = view.session.tuner();
  TuneState state{.parts = {ProgressText(view.budget, {view.session.ElapsedSeconds(), t.answered()},
                                         view.wall_clock),
                            KernelsText(RowsOf(view, false))},
                  .failures = view.session.failures()};
  if (t.TotalNs(true) > 0 && view.model.verdict.default_ns > 0) {
    state.parts.push_back(
        fmt::format("model {:.3f} ms measured by default, {:.3f} ms predicted now",
                    view.model.verdict.default_ns * 1e-6, PredictedNs(view) * 1e-6));
  }
  if (view.measurer == nullptr) state.parts.push_back("predicted by the analytic model");
  if (const double paused = WaitedSeconds(view); paused >= 0.5)
    state.parts.push_back(fmt::format("waited {:.1f} s for other programs", paused));
  return state;
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
                         {"other_count", t.other_count},
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
  // Where parts of the work were screened: how their ranking compares with the whole's.
  if (s.parts().both() == 0) return object;
  object["parts"] = {{"part_us", static_cast<double>(s.parts().part_ns()) * 1e-3},
                     {"on_part", s.on_part()},
                     {"both_ways", s.parts().both()},
                     {"rank_correlation", nullptr}};
  if (const auto correlation = s.parts().RankCorrelation())
    object["parts"]["rank_correlation"] = *correlation;
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

std::string WaysText(const JudgedModel& m) {
  const auto text = [](const char* what, const auto& verdict, const std::string& skipped) {
    if (verdict) return WayLine(*verdict) + "\n";
    return skipped.empty() ? "" : fmt::format("{}: not compared: {}\n", what, skipped);
  };
  return text("batch", m.batch, m.batch_skipped) +
         text("branches", m.branches, m.branches_skipped) +
         text("cascades", m.cascades, m.cascades_skipped);
}

/// What was said of the whole model, and of kernels that lose in it.
std::string ModelText(const TuneView& view) {
  const JudgedModel& m = view.model;
  const db::ModelVerdict& v = m.verdict;
  if (!m.skipped.empty()) return fmt::format("model: not compared: {}\n", m.skipped);
  if (v.rounds == 0) return "";
  if (m.noisy_cpus > 0) {
    return fmt::format(
        "model: no verdict: {:.3f} ms by default, {:.3f} ms tuned, but other programs used {:.1f} "
        "CPUs meanwhile; run the same command on a quiet machine\n",
        v.default_ns * 1e-6, v.tuned_ns * 1e-6, m.noisy_cpus);
  }
  std::string text = VerdictLine(v) + "\n";
  const Tuner& t = view.session.tuner();
  for (int i = 0; i < t.num_tasks(); ++i) {
    if (!view.session.verdicts()[static_cast<size_t>(i)].put_back) continue;
    text += PutBackLine(t.task(i).name, t.task(i).hash.ToHex());
  }
  return text;
}

ordered_json ModelJson(const TuneView& view) {
  const JudgedModel& m = view.model;
  const db::ModelVerdict& v = m.verdict;
  ordered_json object = {{"verdict", nullptr},         {"default_us", nullptr},
                         {"predicted_us", nullptr},    {"tuned_us", nullptr},
                         {"ratio", nullptr},           {"ratio_low", nullptr},
                         {"ratio_high", nullptr},      {"rounds", v.rounds},
                         {"noisy_cpus", m.noisy_cpus}, {"put_back", ordered_json::array()},
                         {"skipped", nullptr},         {"batch", nullptr},
                         {"branches", nullptr},        {"cascades", nullptr},
                         {"text", ModelText(view)}};
  if (m.batch) object["batch"] = WayJson(*m.batch);
  if (!m.batch_skipped.empty()) object["batch"] = {{"skipped", m.batch_skipped}};
  if (m.branches) object["branches"] = WayJson(*m.branches);
  if (!m.branches_skipped.empty()) object["branches"] = {{"skipped", m.branches_skipped}};
  if (m.cascades) object["cascades"] = WayJson(*m.cascades);
  if (!m.cascades_skipped.empty()) object["cascades"] = {{"skipped", m.cascades_skipped}};
  if (v.default_ns > 0) {
    object["default_us"] = v.default_ns * 1e-3;
    object["predicted_us"] = PredictedNs(view) * 1e-3;
  }
  if (v.rounds > 0) {
    if (m.noisy_cpus == 0) object["verdict"] = VerdictWord(v);
    object["tuned_us"] = v.tuned_ns * 1e-3;
    object["ratio"] = v.ratio;
    object["ratio_low"] = v.ratio_low;
    object["ratio_high"] = v.ratio_high;
  }
  for (const Hash128& hash : v.put_back) object["put_back"].push_back(hash.ToHex());
  if (!m.skipped.empty()) object["skipped"] = m.skipped;
  return object;
}

ProgressFacts FactsOf(const TuneView& view) {
  ProgressFacts facts{.text = StateOf(view).Line(),
                      .seconds = view.session.ElapsedSeconds(),
                      .candidates = view.session.tuner().answered()};
  if (view.budget.seconds > 0) facts.budget_seconds = view.budget.seconds;
  if (view.model.verdict.default_ns > 0) {
    facts.default_us = view.model.verdict.default_ns * 1e-3;
    facts.predicted_us = PredictedNs(view) * 1e-3;
  }
  return facts;
}

}  // namespace

double PredictedNs(const TuneView& view) {
  if (view.model.verdict.default_ns <= 0) return 0;
  const Tuner& t = view.session.tuner();
  // Alone, on a busy machine, kernels may seem to take longer than the model that has them all.
  const double scale =
      std::min(1.0, view.model.verdict.default_ns / std::max(1.0, t.TotalNs(false)));
  return view.model.verdict.default_ns - scale * (t.TotalNs(false) - t.TotalNs(true));
}

void TuneProgress::Show(const TuneView& view) {
  const double now = view.session.ElapsedSeconds();
  const bool terminal = context_.environment.error_is_terminal;
  const bool json = context_.json() && !terminal;
  if (now - last_ < (terminal ? kTerminalPause : json ? kJsonPause : kPlainPause)) return;
  last_ = now;
  if (terminal) {
    const ScreenSize screen = ErrorScreen();
    context_.err << table_.Frame(
        LiveTable(RowsOf(view, TellsSpace(screen.LineCells())), StateOf(view), screen), screen);
  } else {
    context_.err << (json ? ProgressJson(FactsOf(view)) : StateOf(view).Line()) << "\n";
  }
  context_.err << std::flush;
  // The program that read our progress has ended or was killed; the log has what was measured.
  if (json && context_.err.fail() && !std::exchange(unread_, true)) std::raise(SIGTERM);
}

void TuneProgress::End(const TuneView& view) {
  if (!context_.json()) {
    context_.err << table_.Erase();
  } else if (!context_.environment.error_is_terminal) {
    context_.err << ProgressJson(FactsOf(view)) << "\n";
  }
  context_.err << std::flush;
}

std::string TuneText(const TuneView& view, size_t cells) {
  const Tuner& t = view.session.tuner();
  std::string illegal;
  for (const search::IllegalSketch& s : search::IllegalSketches(t)) {
    illegal += fmt::format("illegal: {} candidates of {} for {} ({}): {}\n", s.count, s.sketch,
                           t.task(s.task).name, t.task(s.task).hash.ToHex().substr(0, 12), s.why);
  }
  return ModelText(view) + WaysText(view.model) +
         fmt::format("{}\n{}{}; {}: {} candidates in {}\nlog {}, session {}\nnext: {}\n",
                     fmt::join(TaskTable(RowsOf(view, true), {.cells = cells}), "\n"), illegal,
                     KernelsText(RowsOf(view, false)),
                     search::StopReasonName(view.session.reason()), t.answered(),
                     Duration(view.session.ElapsedSeconds()), view.log, view.session.id().ToHex(),
                     view.next);
}

std::string TuneJson(const TuneView& view) {
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
  ordered_json illegal = ordered_json::array();
  for (const search::IllegalSketch& s : search::IllegalSketches(t)) {
    illegal.push_back({{"workload", t.task(s.task).hash.ToHex()},
                       {"sketch", s.sketch},
                       {"candidates", s.count},
                       {"why", s.why}});
  }
  const ordered_json object = {
      {"model", ModelJson(view)},
      {"next", view.next},
      {"log", view.log},
      {"session", view.session.id().ToHex()},
      {"resumed", view.session.resumed()},
      {"measure", view.measurer == nullptr ? "predicted" : "measured"},
      {"reason", std::string(search::StopReasonName(view.session.reason()))},
      {"seconds", view.session.ElapsedSeconds()},
      {"waited_seconds", WaitedSeconds(view)},
      {"attempts", t.attempts()},
      {"answered", t.answered()},
      {"default_us", t.TotalNs(false) * 1e-3},
      {"best_us", t.TotalNs(true) * 1e-3},
      {"failures", failures},
      {"illegal", illegal},
      {"proposers", ProposersJson(t)},
      {"rank_correlation_on_random", correlations},
      {"tasks", tasks}};
  return JsonText(object);
}

}  // namespace hone::client
