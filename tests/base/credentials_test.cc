#include "base/credentials.h"

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(Credentials, LoopbackIsAnAddressAndNotHowANameBegins) {
  for (const char* address : {"127.0.0.1:7421", "127.1.2.3:1", "127.0.0.1", "[::1]:7421",
                              "localhost:7421", "unix:/run/hone"}) {
    EXPECT_TRUE(IsLoopbackAddress(address)) << address;
  }
  for (const char* address : {"127.evil.example:7421", "127.0.0.1.evil.example:7421", "127.:7421",
                              "localhost.evil.example:7421", "0.0.0.0:7421", "10.127.0.1:7421"}) {
    EXPECT_FALSE(IsLoopbackAddress(address)) << address;
  }
}

}  // namespace
}  // namespace hone
