#pragma once

#include <string_view>

// std only: the runner includes this file.
namespace hone::ir {

/// What stands before the first colon of a target ("cpu:avx2") or a device ("cpu:0"): the name of
/// its kind, known or not.
inline std::string_view KindNameOf(std::string_view text) { return text.substr(0, text.find(':')); }

}  // namespace hone::ir
