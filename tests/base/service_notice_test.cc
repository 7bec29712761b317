#include "base/service_notice.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "gtest/gtest.h"

#include "base/core/unique_fd.h"

namespace hone {
namespace {

/// What stands at a socket after NotifyService, as a service manager would read it.
std::string Heard(const std::string& name, const std::string& bound) {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, bound.data(), bound.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bound.size());
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  const absl::Status told = NotifyService(name, "READY=1");
  EXPECT_TRUE(told.ok()) << told;
  std::array<char, 64> text{};
  const ssize_t got = ::recv(fd.get(), text.data(), text.size(), 0);
  return got > 0 ? std::string(text.data(), static_cast<size_t>(got)) : std::string();
}

TEST(ServiceNoticeTest, TheServiceManagerHearsIt) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("notice-" + std::to_string(::getpid()));
  EXPECT_EQ(Heard(path, path), "READY=1");
  std::filesystem::remove(path);
  const std::string name = "hone-notice-" + std::to_string(::getpid());
  EXPECT_EQ(Heard("@" + name, std::string(1, '\0') + name), "READY=1");
}

TEST(ServiceNoticeTest, NobodyAskedOrNobodyIsThere) {
  EXPECT_TRUE(NotifyService("", "READY=1").ok());
  EXPECT_FALSE(NotifyService("relative", "READY=1").ok());
  EXPECT_FALSE(NotifyService("/no/such/socket", "READY=1").ok());
  EXPECT_FALSE(NotifyService("/" + std::string(200, 'x'), "READY=1").ok());
}

}  // namespace
}  // namespace hone
