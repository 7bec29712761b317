#include "client/report_chart.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"

namespace hone::client {
namespace {

/// Maps values to pixels, linearly.
struct Scale {
  double from = 0, to = 1;          ///< values
  double begin_px = 0, end_px = 1;  ///< pixels

  double operator()(double value) const {
    const double share = to > from ? (value - from) / (to - from) : 0;
    return begin_px + share * (end_px - begin_px);
  }
};

/// 1, 2 or 5 times a power of ten, so that about `parts` steps fill the range.
double NiceStep(double range, int parts) {
  const double raw = std::max(range, 1e-9) / parts;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

/// A step of whole seconds, minutes, hours or days, so that at most `parts` fill the time.
double TimeStep(double end, int parts) {
  for (const double step : {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400,
                            28800, 86400, 172800, 604800}) {
    if (end <= step * parts) return step;
  }
  constexpr double kWeek = 604800;
  return kWeek * std::ceil(end / kWeek / parts);
}

/// "0", "30 s", "2 min", "1.5 h": the unit that its step asks for.
std::string TickText(double seconds, double step) {
  if (seconds == 0) return "0";
  if (step < 60) return fmt::format("{:g} s", seconds);
  return step < 1800 ? fmt::format("{:g} min", seconds / 60)
                     : fmt::format("{:g} h", seconds / 3600);
}

/// Where the steps of the curve go: right, then down.
std::string StairPath(const std::vector<CurvePoint>& curve, double end_seconds, const Scale& x,
                      const Scale& y) {
  std::string path;
  for (const CurvePoint& point : curve) {
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", x(point.seconds), y(point.us))
                         : fmt::format("H{:.1f}V{:.1f}", x(point.seconds), y(point.us));
  }
  return path + fmt::format("H{:.1f}", x(end_seconds));
}

double EndOf(const std::vector<CurvePoint>& curve, double end_seconds) {
  return std::max(end_seconds, curve.empty() ? 0.0 : curve.back().seconds);
}

/// Horizontal lines of a plot with their values, and values below it.
std::string FrontAxes(const Scale& x, const Scale& y, double floor_px) {
  std::string svg;
  const double decibels = NiceStep(y.to - y.from, 4);
  for (double value = std::ceil(y.from / decibels) * decibels; value <= y.to; value += decibels) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"end\" x=\"{3:.1f}\" y=\"{4:.1f}\">{5:g} dB</text>",
        x.begin_px, x.end_px, y(value), x.begin_px - 8, y(value) + 4, value);
  }
  const double ms = NiceStep(x.to - x.from, 5);
  for (double value = std::ceil(x.from / ms) * ms; value <= x.to; value += ms) {
    svg += fmt::format(
        "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x(value),
        floor_px, TimeText(1000 * value));
  }
  return svg;
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string TimeText(double us) {
  const auto [value, unit] = us < 1000  ? std::pair(us, "µs")
                             : us < 1e6 ? std::pair(us * 1e-3, "ms")
                                        : std::pair(us * 1e-6, "s");
  const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, unit);
}

std::string LargeCurve(const std::vector<CurvePoint>& curve, double end_seconds,
                       double reference_us) {
  if (curve.empty()) return "<p class=\"quiet\">No curve: not every group was measured.</p>";
  constexpr double kWidth = 720, kHeight = 260, kLeft = 64, kRight = 12, kTop = 14, kBottom = 34;
  const double end = EndOf(curve, end_seconds);
  const double highest = std::max(reference_us, curve.front().us);
  const Scale x{0, end, kLeft, kWidth - kRight};
  const Scale y{0, highest * 1.06, kHeight - kBottom, kTop};
  std::string svg = fmt::format(
      "<svg class=\"large\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"best latency so "
      "far\">",
      kWidth, kHeight);
  const double step = NiceStep(highest, 5);
  for (double value = 0; value <= highest * 1.06; value += step) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"end\" x=\"{3}\" y=\"{4:.1f}\">{5}</text>",
        kLeft, kWidth - kRight, y(value), kLeft - 8, y(value) + 4,
        value == 0 ? "0" : TimeText(value));
  }
  const double second_step = end < 1 ? NiceStep(end, 8) : TimeStep(end, 8);
  for (double value = 0; value <= end; value += second_step) {
    svg += fmt::format("<text class=\"tick\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{}\">{}</text>",
                       x(value) > kWidth - 30 ? "end" : "middle", x(value), kHeight - 12,
                       TickText(value, second_step));
  }
  const std::string path = StairPath(curve, end, x, y);
  svg += fmt::format("<path class=\"area\" d=\"{}V{:.1f}H{:.1f}Z\"/>", path, y(0),
                     x(curve.front().seconds));
  svg += fmt::format("<path class=\"line\" d=\"{}\"/>", path);
  if (reference_us > 0) {
    svg += fmt::format(
        "<line class=\"reference\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"end\" x=\"{1}\" y=\"{3:.1f}\">default schedules, "
        "{4}</text>",
        kLeft, kWidth - kRight, y(reference_us), y(reference_us) - 4, TimeText(reference_us));
  }
  // Above the line, but below it where the default's line and its label are just there.
  constexpr double kRoom = 26;
  const double last = y(curve.back().us);
  const bool close = reference_us > 0 && std::abs(last - y(reference_us)) < kRoom;
  svg += fmt::format(
      "<circle class=\"dot\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3.5\"/>"
      "<text class=\"label\" text-anchor=\"end\" x=\"{0:.1f}\" y=\"{2:.1f}\">{3}</text>",
      x(end), last, close ? last + 18 : last - 8, TimeText(curve.back().us));
  return svg + "</svg>";
}

std::string SmallCurve(const std::vector<CurvePoint>& curve, double end_seconds,
                       double reference_us) {
  if (curve.empty()) return "";
  constexpr double kWidth = 120, kHeight = 36;
  const double end = EndOf(curve, end_seconds);
  const double highest = std::max(reference_us, curve.front().us);
  const Scale x{0, end, 1, kWidth - 4};
  const Scale y{std::min(curve.back().us, highest * 0.95), highest, kHeight - 4, 4};
  return fmt::format(
      "<svg class=\"small\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "aria-label=\"from {2} to {3}\"><path class=\"line\" d=\"{4}\"/><circle class=\"dot\" "
      "cx=\"{5:.1f}\" cy=\"{6:.1f}\" r=\"2.5\"/></svg>",
      kWidth, kHeight, TimeText(curve.front().us), TimeText(curve.back().us),
      StairPath(curve, end, x, y), x(end), y(curve.back().us));
}

std::string GainBar(double gain, double low, double high, double most) {
  constexpr double kWidth = 110, kHeight = 18;
  const double end = std::log(std::max(most, 1.25));
  // A loss goes left of the line at 1, for which a fifth of the room is kept.
  const Scale x{-0.25 * end, end, 1, kWidth - 2};
  const auto at = [&](double value) {
    return x(std::clamp(std::log(std::max(value, 1e-3)), -0.25 * end, end));
  };
  const double from = std::min(at(1), at(gain)), to = std::max(at(1), at(gain));
  return fmt::format(
      "<svg class=\"small\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "aria-label=\"{2:.2f} times\"><rect class=\"{3}\" x=\"{4:.1f}\" y=\"4\" width=\"{5:.1f}\" "
      "height=\"10\" rx=\"2\"/><line class=\"axis\" x1=\"{6:.1f}\" x2=\"{6:.1f}\" y1=\"1\" "
      "y2=\"17\"/><path class=\"whisker\" d=\"M{7:.1f} 6V12M{7:.1f} 9H{8:.1f}M{8:.1f} "
      "6V12\"/></svg>",
      kWidth, kHeight, gain, gain >= 1 ? "win" : "loss", from, std::max(0.5, to - from), at(1),
      at(low), at(high));
}

std::string FrontCurve(const std::vector<PlottedModel>& points) {
  if (points.empty()) return "<p class=\"quiet\">No models were timed.</p>";
  constexpr double kWidth = 720, kHeight = 300, kLeft = 64, kRight = 70, kTop = 26, kBottom = 34;
  constexpr double kRoom = 0.15;  // of the range, left free around the points
  double least_ms = HUGE_VAL, most_ms = 0, least = HUGE_VAL, most = 0;
  for (const PlottedModel& point : points) {
    least_ms = std::min(least_ms, point.ms);
    most_ms = std::max(most_ms, point.ms);
    if (!std::isfinite(point.decibels)) continue;
    least = std::min(least, point.decibels);
    most = std::max(most, point.decibels);
  }
  if (least > most) least = most = 0;  // all are exact
  const double spread_ms = std::max(most_ms - least_ms, 0.02 * most_ms) * kRoom;
  const double spread = std::max(most - least, 1.0) * kRoom;
  const Scale x{std::max(0.0, least_ms - spread_ms), most_ms + spread_ms, kLeft, kWidth - kRight};
  const Scale y{least - spread, most + 2 * spread, kHeight - kBottom, kTop};
  std::string line, dots;
  std::vector<std::pair<double, double>> labels;
  for (const PlottedModel& point : points) {
    const double px = x(point.ms), py = std::isfinite(point.decibels) ? y(point.decibels) : kTop;
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", px, py);
    dots += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>", px, py);
    if (point.chosen) {
      dots += fmt::format("<circle class=\"ring\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"8\"/>", px, py);
    }
    const auto lies_on = [&](const auto& other) {
      return std::abs(other.first - px) < 70 && std::abs(other.second - py) < 26;
    };
    if (!point.chosen && std::ranges::any_of(labels, lies_on)) continue;
    labels.emplace_back(px, py);
    dots += fmt::format(
        "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}"
        "</text>",
        px, py - 13, Escaped(point.label));
  }
  return fmt::format(
             "<svg class=\"large\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"accuracy "
             "against "
             "measured time\">",
             kWidth, kHeight) +
         FrontAxes(x, y, kHeight - 12) + fmt::format("<path class=\"line\" d=\"{}\"/>", line) +
         dots + "</svg>";
}

}  // namespace hone::client
