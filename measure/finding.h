#pragma once

#include <string>
#include <utility>

namespace hone::measure {

/// A fault keeps Hone from working, a warning makes it slow or its times untrustworthy.
enum class Health { kGood, kWarning, kFault };

/// What one check found, and what to do about it.
struct Finding {
  std::string check;
  Health health = Health::kGood;
  std::string found;
  std::string remedy;  ///< empty when all is well
};

inline Finding Good(std::string check, std::string found) {
  return {std::move(check), Health::kGood, std::move(found), ""};
}

}  // namespace hone::measure
