#include "client/report_page.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/versions.h"
#include "client/page_style.h"
#include "client/report_chart.h"
#include "client/verdict_text.h"

namespace hone::client {
namespace {

std::string DateText(int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

std::string Duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  return whole >= 60 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                     : fmt::format("{} s", whole);
}

std::string Card(const std::string& value, const std::string& meaning) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>", Escaped(value),
                     Escaped(meaning));
}

std::string Verdict(const SessionReport& report) {
  if (report.Predicted()) {
    return "<p class=\"verdict\">model: no verdict; nothing was measured, all times are "
           "predictions "
           "of the analytic model</p>";
  }
  if (!report.verdict) {
    return "<p class=\"verdict\">model: no verdict; default and tuned were not compared as a "
           "whole, or other programs disturbed the comparison. On a quiet machine the same "
           "<code>hone tune</code> makes it.</p>";
  }
  return fmt::format("<p class=\"verdict{}\">{}</p>", report.verdict->keeps_defaults ? "" : " won",
                     Escaped(VerdictLine(*report.verdict)));
}

std::string Ways(const SessionReport& report) {
  std::string text;
  for (const auto& way : {report.batch, report.branches, report.cascades})
    if (way) text += fmt::format("<p>{}</p>", Escaped(WayLine(*way)));
  return text;
}

std::string Cards(const SessionReport& report) {
  const Interval by_default = report.ByDefault(), best = report.Best();
  std::string text = "<div class=\"cards\">";
  if (best.median_us > 0) {
    const std::string sum = report.SumOf().empty() ? "all kernels" : report.SumOf();
    text += Card(TimeText(by_default.median_us), sum + " by default");
    text += Card(TimeText(best.median_us), sum + " tuned");
    if (report.Compared()) {
      text += Card(fmt::format("{:.2f} ×", by_default.median_us / best.median_us),
                   fmt::format("gain; {:.2f} to {:.2f} by the intervals",
                               by_default.low_us / best.high_us, by_default.high_us / best.low_us));
    }
  }
  int64_t tried = 0;
  for (const auto& [outcome, count] : report.outcomes) tried += count;
  text +=
      Card(fmt::format("{}", tried), fmt::format("candidates for {} groups", report.tasks.size()));
  text += Card(Duration(report.used_seconds),
               report.reason.empty() ? "of tuning; not finished" : "of tuning: " + report.reason);
  return text + "</div>";
}

std::string Latency(const Interval& latency, bool predicted) {
  if (latency.median_us <= 0) return "–";
  if (latency.low_us == latency.high_us) {
    return fmt::format("{}<small>{}</small>", TimeText(latency.median_us),
                       predicted ? "predicted" : "in turns with the best");
  }
  return fmt::format("{}<small>{} to {}</small>", TimeText(latency.median_us),
                     TimeText(latency.low_us), TimeText(latency.high_us));
}

std::string RooflineCell(const ReportTask& task) {
  if (task.bound_us <= 0 || task.best.median_us <= 0) return "–";
  const double share = task.bound_us / task.best.median_us;
  return fmt::format(
      "<div style=\"display:flex;gap:8px;align-items:center;justify-content:flex-end\">"
      "<div class=\"meter\"><i style=\"width:{:.0f}%\"></i></div>{:.0f} %</div>",
      100 * std::min(1.0, share), 100 * share);
}

std::string TaskRow(const ReportTask& task, double total_us, double most_gain, double end_seconds,
                    bool roofline) {
  const bool predicted = task.rigor == db::RigorName(db::Rigor::kPredicted);
  std::string row = fmt::format(
      "<tr><td class=\"name\">{}<small><code>{}</code></small></td><td class=\"n wide\">{}</td>"
      "<td class=\"n wide\">{:.1f} %</td><td class=\"n\">{}</td><td class=\"n\">{}</td>",
      Escaped(task.name), task.workload.ToHex().substr(0, 12), task.count,
      total_us > 0 ? 100 * task.count * task.best.median_us / total_us : 0,
      Latency(task.by_default, predicted), Latency(task.best, predicted));
  row += task.compared ? fmt::format(
                             "<td class=\"n\">{:.2f} ×<small>{:.2f} to {:.2f}</small></td><td "
                             "class=\"extra\">{}</td>",
                             task.Gain(), task.GainLow(), task.GainHigh(),
                             GainBar(task.Gain(), task.GainLow(), task.GainHigh(), most_gain))
                       : std::string("<td class=\"n\">–</td><td class=\"extra\"></td>");
  if (roofline) row += fmt::format("<td class=\"n wide\">{}</td>", RooflineCell(task));
  row +=
      fmt::format("<td class=\"extra\">{}</td><td class=\"n wide\">{}<small>{}</small></td></tr>\n",
                  SmallCurve(task.curve, end_seconds, task.by_default.median_us), task.tried,
                  task.failed > 0 ? fmt::format("{} failed", task.failed) : Escaped(task.rigor));
  return row;
}

std::string TaskTable(const SessionReport& report) {
  double total_us = 0, most_gain = 1;
  for (const ReportTask& task : report.tasks) {
    total_us += task.count * task.best.median_us;
    // One huge gain must not make all others invisible: its bar is cut.
    if (task.compared) most_gain = std::min(6.0, std::max(most_gain, task.GainHigh()));
  }
  std::string text =
      "<div class=\"panel\"><table><thead><tr><th>group</th><th class=\"n wide\">count</th><th "
      "class=\"n wide\">share</th><th class=\"n\">default</th><th class=\"n\">best</th><th "
      "class=\"n\">gain</th><th class=\"extra\"></th>";
  if (report.has_roofline) text += "<th class=\"n wide\">roofline</th>";
  text +=
      "<th class=\"extra\">best so far</th><th class=\"n wide\">tried</th></tr></thead><tbody>\n";
  for (const ReportTask& task : report.tasks) {
    text += TaskRow(task, total_us, most_gain, report.used_seconds, report.has_roofline);
  }
  text +=
      "</tbody></table></div><p class=\"quiet\">Times are medians of one run of the group with "
      "an interval of about 95 %; count is how often the model runs it, share its part of "
      "the tuned time. A gain stands where default and best ran in turns.";
  if (report.has_roofline) {
    text +=
        " Roofline: the time that this machine's arithmetic or memory needs at least, over the "
        "best time; Winograd's algorithm computes less than is counted and may exceed 100 %.";
  }
  return text + "</p>";
}

std::string Counts(const SessionReport& report) {
  std::string text =
      "<div class=\"pair\"><div class=\"panel\"><table><thead><tr><th>what became of "
      "them</th><th class=\"n\">candidates</th></tr></thead><tbody>";
  for (const auto& [outcome, count] : report.outcomes) {
    text += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td></tr>", Escaped(outcome), count);
  }
  text +=
      "</tbody></table></div><div class=\"panel\"><table><thead><tr><th>proposed by</th><th "
      "class=\"n\">candidates</th><th class=\"n\">improved the best</th></tr></thead><tbody>";
  for (const auto& [name, counts] : report.proposers) {
    text += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                        Escaped(name), counts.first, counts.second);
  }
  return text + "</tbody></table></div></div>";
}

/// The places of rows in an order, from 1.
std::vector<size_t> Places(
    const std::vector<ReportTrial>& trials,
    const std::function<bool(const ReportTrial&, const ReportTrial&)>& less) {
  std::vector<size_t> order(trials.size()), places(trials.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return less(trials[a], trials[b]); });
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = i + 1;
  return places;
}

/// Rows carry their place in each order, and style alone puts them there: the page has no script.
std::string Trials(const SessionReport& report) {
  const auto time = [](const ReportTrial& t) { return std::pair(t.us == 0, t.us); };
  const std::vector<size_t> by_group =
      Places(report.trials, [&](const ReportTrial& a, const ReportTrial& b) {
        return std::pair(a.task, time(a)) < std::pair(b.task, time(b));
      });
  const std::vector<size_t> by_time =
      Places(report.trials, [&](const auto& a, const auto& b) { return time(a) < time(b); });
  const std::vector<size_t> by_outcome =
      Places(report.trials, [](const auto& a, const auto& b) { return a.outcome < b.outcome; });
  std::string text = "<div class=\"panel trials\">";
  for (const auto& [id, name] :
       {std::pair("new", "newest"), std::pair("group", "by group"), std::pair("time", "by time"),
        std::pair("outcome", "by outcome")}) {
    text += fmt::format(
        "<input type=\"radio\" name=\"by\" id=\"by-{0}\"{2}>"
        "<label for=\"by-{0}\">{1}</label>",
        id, name, std::string_view(id) == "new" ? " checked" : "");
  }
  text +=
      "<div class=\"rows\"><div class=\"trial head\"><div class=\"n\">#</div>"
      "<div>group</div><div class=\"n at\">after</div><div class=\"n\">time</div>"
      "<div class=\"by\">proposed by</div><div>outcome</div></div>\n";
  for (size_t i = 0; i < report.trials.size(); ++i) {
    const ReportTrial& trial = report.trials[i];
    text += fmt::format(
        "<div class=\"trial\" style=\"--new:{};--group:{};--time:{};--outcome:{}\">"
        "<div class=\"n quiet number\">{}</div><div>{}</div><div class=\"n quiet at\">{}</div>"
        "<div class=\"n\">{}</div><div class=\"quiet by\">{}</div><div "
        "class=\"outcome {}\">{}</div></div>\n",
        i + 1, by_group[i], by_time[i], by_outcome[i], trial.number,
        Escaped(report.tasks[trial.task].name), Duration(trial.seconds),
        trial.us > 0 ? TimeText(trial.us) : "–", Escaped(trial.proposer),
        trial.outcome == "ok" ? "quiet" : "bad", Escaped(trial.outcome));
  }
  return text + fmt::format(
                    "</div></div><p class=\"quiet\">The newest {} candidates and the {} "
                    "fastest of each group; times are the search's own.</p>",
                    SessionReport::kNewest, SessionReport::kFastest);
}

std::string Origin(const SessionReport& report) {
  std::string rows;
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    rows += fmt::format("<tr><td>{}</td><td><code>{}</code></td></tr>", name, Escaped(value));
  };
  add("session", report.session.id.ToHex());
  add("seed", std::to_string(report.session.seed));
  add("target", report.target);
  add("device class", report.device_class);
  add("device", report.fingerprint);
  const auto versions = nlohmann::ordered_json::parse(report.session.versions, nullptr, false);
  std::string text;
  if (versions.is_object()) {
    for (const auto& [key, value] : versions.items()) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key,
                          value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  add("versions", text);
  add("page made by", fmt::format("hone {}", kProgramVersion));
  return fmt::format("<div class=\"panel\"><table><tbody>{}</tbody></table></div>", rows);
}

}  // namespace

std::string ReportPage(const SessionReport& report) {
  const std::string title = report.model.empty() ? "Tuning session" : report.model;
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><title>{0}, tuned by Hone</title><style>{1}"
      "</style></head><body><main>\n<h1>{0}</h1><div class=\"quiet\">tuned by Hone for {2}, {3}"
      "</div>\n",
      Escaped(title), kPageStyle, Escaped(report.target), DateText(report.session.created_ms));
  page += Verdict(report) + Ways(report) + Cards(report);
  page += "\n<h2>The model's time over the session</h2><div class=\"panel\">" +
          LargeCurve(report.model_curve, report.used_seconds, report.ByDefault().median_us) +
          "</div><p class=\"quiet\">The best time of every group as the search "
          "measured it, times how often it occurs, added up. The cards above are of the comparison "
          "at the end, which measured default and best in turns.</p>\n";
  page += "<h2>Groups</h2>" + TaskTable(report);
  page += "\n<h2>Candidates</h2>" + Counts(report);
  if (!report.command.empty()) {
    page += fmt::format(
        "\n<h2>To repeat it</h2><div class=\"panel\"><pre>{}</pre></div><p class=\"quiet\">With a "
        "new log: where the log knows this session's records, the search starts from them.</p>",
        Escaped(report.command));
  }
  page += "\n<h2>Where it comes from</h2>" + Origin(report);
  if (!report.trials.empty()) page += "\n<h2>Single candidates</h2>" + Trials(report);
  return page + "\n</main></body></html>\n";
}

}  // namespace hone::client
