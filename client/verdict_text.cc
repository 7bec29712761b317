#include "client/verdict_text.h"

#include <cmath>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace hone::client {
namespace {

struct Unit {
  const char* name;
  double ns;
};

Unit UnitOf(double ns) {
  if (ns >= 1e9) return {"s", 1e9};
  if (ns >= 1e6) return {"ms", 1e6};
  return {"us", 1e3};
}

/// Three digits, or all of those before the point.
std::string Digits(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  return value >= 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

std::string IntervalText(const db::ModelVerdict& v) {
  // A bound just above 1 must not read as 1.00, nor one just below as if it were not.
  const auto bound = [](double ratio) {
    const double shown = std::round(ratio * 100) / 100;
    return fmt::format("{:.{}f}", ratio, shown == 1 && ratio != 1 ? 4 : 2);
  };
  return fmt::format("[{}, {}]", bound(v.ratio_low), bound(v.ratio_high));
}

}  // namespace

std::string VerdictLine(const db::ModelVerdict& v) {
  const Unit unit = UnitOf(v.default_ns);
  const std::string times = fmt::format("model: {} → {} {}", Digits(v.default_ns / unit.ns),
                                        Digits(v.tuned_ns / unit.ns), unit.name);
  const std::string interval = IntervalText(v);
  if (!v.keeps_defaults) return fmt::format("{}, {:.2f} × faster {}", times, v.ratio, interval);
  return fmt::format("{}, {:.2f} × {}: not surely faster, so this model keeps its defaults", times,
                     v.ratio, interval);
}

std::string PutBackLine(const std::string& name, const std::string& hash) {
  return fmt::format("put back: {} ({}) is faster by default in this model\n", name,
                     hash.substr(0, 12));
}

std::string VerdictWord(const db::ModelVerdict& v) {
  return v.keeps_defaults ? "keeps_defaults" : "won";
}

nlohmann::ordered_json VerdictJson(const db::ModelVerdict& v) {
  auto put_back = nlohmann::ordered_json::array();
  for (const Hash128& hash : v.put_back) put_back.push_back(hash.ToHex());
  return {{"verdict", VerdictWord(v)},
          {"default_us", v.default_ns * 1e-3},
          {"tuned_us", v.tuned_ns * 1e-3},
          {"ratio", v.ratio},
          {"ratio_low", v.ratio_low},
          {"ratio_high", v.ratio_high},
          {"rounds", v.rounds},
          {"put_back", std::move(put_back)}};
}

std::string BatchLine(const db::ModelVerdict& v) {
  const Unit unit = UnitOf(v.default_ns);
  return fmt::format("batch: together {} {}, image by image {} {}, {:.2f} × as fast {}: runs {}",
                     Digits(v.default_ns / unit.ns), unit.name, Digits(v.tuned_ns / unit.ns),
                     unit.name, v.ratio, IntervalText(v),
                     v.keeps_defaults ? "together" : "image by image");
}

std::string BatchWhy(const db::ModelVerdict& v) {
  return fmt::format("image by image it is {:.2f} × as fast {}", v.ratio, IntervalText(v));
}

nlohmann::ordered_json BatchJson(const db::ModelVerdict& v) {
  return {{"run", v.keeps_defaults ? "together" : "each"},
          {"together_us", v.default_ns * 1e-3},
          {"each_us", v.tuned_ns * 1e-3},
          {"ratio", v.ratio},
          {"ratio_low", v.ratio_low},
          {"ratio_high", v.ratio_high},
          {"rounds", v.rounds}};
}

}  // namespace hone::client
