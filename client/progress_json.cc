#include "client/progress_json.h"

#include "nlohmann/json.hpp"

#include "client/json_text.h"

namespace hone::client {

using nlohmann::ordered_json;

std::string ProgressJson(const ProgressFacts& facts) {
  const auto known = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json();
  };
  return JsonText(ordered_json({{"progress",
                                 {{"text", facts.text},
                                  {"seconds", facts.seconds},
                                  {"budget_seconds", known(facts.budget_seconds)},
                                  {"candidates", facts.candidates},
                                  {"default_us", known(facts.default_us)},
                                  {"predicted_us", known(facts.predicted_us)}}}}));
}

}  // namespace hone::client
