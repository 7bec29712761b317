#include "base/farm_address.h"

#include <utility>

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(FarmAddress, APortThatIsLeftOutIsTheFarms) {
  for (const auto& [given, dialled] :
       {std::pair("127.0.0.1", "127.0.0.1:7421"), std::pair("tuner", "tuner:7421"),
        std::pair("tuner.example:80", "tuner.example:80"), std::pair("::1", "[::1]:7421"),
        std::pair("[::1]", "[::1]:7421"), std::pair("[fe80::1%eth0]:1", "[fe80::1%eth0]:1"),
        std::pair("tuner:65535", "tuner:65535"), std::pair("unix:/run/hone", "unix:/run/hone")}) {
    const auto address = DialAddress(given);
    ASSERT_TRUE(address.ok()) << given << address.status();
    EXPECT_EQ(*address, dialled);
  }
  EXPECT_EQ(ListenAddress("0.0.0.0").value(), "0.0.0.0:7421");
  EXPECT_EQ(ListenAddress("::").value(), "[::]:7421");
}

TEST(FarmAddress, APortIsOneThatCanBeDialled) {
  for (const char* address : {"tuner:0", "tuner:65536", "tuner:99999", "tuner:", "tuner:http",
                              "tuner:-1", "[::1]:0", "127.0.0.1:111111111111"}) {
    const auto dialled = DialAddress(address);
    EXPECT_EQ(dialled.status().code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_NE(dialled.status().message().find("a port is a number from 1 to 65535"),
              std::string::npos)
        << dialled.status();
  }
  EXPECT_EQ(ListenAddress("127.0.0.1:0").value(), "127.0.0.1:0") << "any free one";
  EXPECT_FALSE(ListenAddress("127.0.0.1:99999").ok());
}

TEST(FarmAddress, WhatIsNoAddressIsRefused) {
  for (const char* address :
       {"", ":7421", "a b", "[::1", "[tuner]:1", "1:2:3", "[::1]7421", "dns:///tuner"}) {
    EXPECT_FALSE(DialAddress(address).ok()) << address;
    EXPECT_FALSE(ListenAddress(address).ok()) << address;
  }
  EXPECT_FALSE(ListenAddress("nonsense").ok()) << "a name is not one of this machine's addresses";
  EXPECT_TRUE(ListenAddress("localhost:7421").ok());
}

}  // namespace
}  // namespace hone
