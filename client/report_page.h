#pragma once

#include <string>

#include "client/session_report.h"

namespace hone::client {

/// The report as one HTML page: inline style and SVG, no script, nothing from outside.
std::string ReportPage(const SessionReport& report);

}  // namespace hone::client
