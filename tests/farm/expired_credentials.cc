#include "tests/farm/expired_credentials.h"

#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "server/ca.h"

namespace hone::farm {

std::string IssueExpired(const FarmFolder& farm, CallerRole role, const std::string& name) {
  EXPECT_TRUE(server::Issue({.ca_folder = farm.Path("ca"),
                             .role = role,
                             .name = name,
                             .out_folder = farm.Path(name),
                             .now_unix_s = SystemWallClock().UnixNs() / 1'000'000'000,
                             .seconds = -60})
                  .ok());
  return farm.Path(name);
}

}  // namespace hone::farm
