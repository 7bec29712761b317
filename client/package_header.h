#pragma once

#include <string>

#include "ir/plan.h"

namespace hone::client {

/// What a C header for one model is made of.
struct HeaderModel {
  std::string name;    ///< CModelName
  std::string target;  ///< resolved text
  const ir::Plan* plan = nullptr;
};

/// A C header (C99, C++11) that needs no other file: the text of hone/hone.h, the package's symbols
/// (WritePackageObject), structures of typed pointers to its inputs and outputs, and functions
/// NAME_open, NAME_run and NAME_close over the C API.
std::string PackageHeader(const HeaderModel& model);

}  // namespace hone::client
