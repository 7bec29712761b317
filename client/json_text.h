#pragma once

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace hone::client {

/// A value as JSON on one line. Names of files and tensors may be any bytes: what is not UTF-8
/// becomes U+FFFD, for a name must not keep a result from being told.
std::string JsonText(const nlohmann::json& value);
std::string JsonText(const nlohmann::ordered_json& value);

/// The text, or null where it is empty.
nlohmann::ordered_json TextOrNull(const std::string& text);

}  // namespace hone::client
