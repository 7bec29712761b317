#pragma once

#include <string>

namespace hone::client {

/// Every number of base/versions.h and of the libraries that results depend on, a line each.
std::string VersionText();

/// The same as one JSON object, without a newline behind it.
std::string VersionJson();

}  // namespace hone::client
