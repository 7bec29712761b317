#pragma once

#include <string>

#include "nlohmann/json_fwd.hpp"

#include "db/model_verdict.h"

namespace hone::client {

/// "model: 15.5 → 8.4 ms, 1.85 × faster [1.83, 1.85]", or that the model keeps its defaults; one
/// line without its end. Said alike by `hone tune`, the report and the page.
std::string VerdictLine(const db::ModelVerdict& verdict);
/// The same for `--json`, times in us.
/// "put back: NAME (HASH) is faster by default in this model", for a Workload's hash in
/// hexadecimal.
std::string PutBackLine(const std::string& name, const std::string& hash);
nlohmann::ordered_json VerdictJson(const db::ModelVerdict& verdict);
/// "won" or "keeps_defaults", as `--json` says it.
std::string VerdictWord(const db::ModelVerdict& verdict);

// The same of a verdict on how a batch or branches run (ModelVerdict::Subject).

/// "batch: together 33.2 ms, image by image 27.5 ms, 1.24 × as fast [1.21, 1.26]: runs image by
/// image".
std::string WayLine(const db::ModelVerdict& verdict);
/// "image by image it is 1.24 × as fast [1.21, 1.26]".
std::string WayWhy(const db::ModelVerdict& verdict);
nlohmann::ordered_json WayJson(const db::ModelVerdict& verdict);

}  // namespace hone::client
