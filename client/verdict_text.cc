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

/// What is said of two ways to run a model, and the words of the option that sets them.
struct Ways {
  const char* what;
  const char* verb;
  const char *first, *second;
  std::string first_word, second_word;
};

const Ways& WaysOf(const db::ModelVerdict& v) {
  static const Ways batch = {"batch", "runs", "together", "image by image", "together", "each"};
  static const Ways branches = {"branches", "run", "in turn", "side by side", "turn", "beside"};
  static const Ways cascades = {"cascades", "run", "layer by layer", "in bands", "off", "on"};
  if (v.subject == db::ModelVerdict::Subject::kCascades) return cascades;
  return v.subject == db::ModelVerdict::Subject::kBranches ? branches : batch;
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

std::string WayLine(const db::ModelVerdict& v) {
  const Unit unit = UnitOf(v.default_ns);
  const Ways& ways = WaysOf(v);
  return fmt::format("{}: {} {} {}, {} {} {}, {:.2f} × as fast {}: {} {}", ways.what, ways.first,
                     Digits(v.default_ns / unit.ns), unit.name, ways.second,
                     Digits(v.tuned_ns / unit.ns), unit.name, v.ratio, IntervalText(v), ways.verb,
                     v.keeps_defaults ? ways.first : ways.second);
}

std::string WayWhy(const db::ModelVerdict& v) {
  return fmt::format("{} it is {:.2f} × as fast {}", WaysOf(v).second, v.ratio, IntervalText(v));
}

nlohmann::ordered_json WayJson(const db::ModelVerdict& v) {
  const Ways& ways = WaysOf(v);
  return {{"run", v.keeps_defaults ? ways.first_word : ways.second_word},
          {ways.first_word + "_us", v.default_ns * 1e-3},
          {ways.second_word + "_us", v.tuned_ns * 1e-3},
          {"ratio", v.ratio},
          {"ratio_low", v.ratio_low},
          {"ratio_high", v.ratio_high},
          {"rounds", v.rounds}};
}

}  // namespace hone::client
