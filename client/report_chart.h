#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/session_report.h"

// Pictures of `hone report` and `hone quantize --report`, as SVG text without a namespace prefix,
// to stand inside HTML.
namespace hone::client {

/// `text` with the five characters replaced that mean something in HTML.
std::string Escaped(std::string_view text);

/// "12.3 us", "1.23 ms", "1.23 s": three digits.
std::string TimeText(double us);

/// A staircase of the best so far over the session, with axes, and a dashed line at `reference_us`
/// (0: none). 720 by 260.
std::string LargeCurve(const std::vector<CurvePoint>& curve, double end_seconds,
                       double reference_us);

/// The same without axes, 120 by 36, scaled to its own range.
std::string SmallCurve(const std::vector<CurvePoint>& curve, double end_seconds,
                       double reference_us);

/// A bar from 1 to the gain on a logarithmic scale up to `most`, with a whisker for its interval.
/// 110 by 18.
std::string GainBar(double gain, double low, double high, double most);

/// A model on the front of accuracy against time.
struct PlottedModel {
  double ms = 0, decibels = 0;  ///< decibels of infinity stand at the top
  std::string label;
  bool chosen = false;  ///< drawn with a ring
};

/// Accuracy over time, a line from point to point, with axes. 720 by 300. Labels that would lie on
/// each other are left out: the table below the picture has them all.
std::string FrontCurve(const std::vector<PlottedModel>& points);

}  // namespace hone::client
