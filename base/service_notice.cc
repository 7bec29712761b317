#include "base/service_notice.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "fmt/format.h"

#include "base/core/unique_fd.h"
#include "base/status.h"

namespace hone {

absl::Status NotifyService(const std::string& socket, const std::string& state) {
  if (socket.empty()) return absl::OkStatus();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(address.sun_path) || (socket[0] != '/' && socket[0] != '@')) {
    return absl::InvalidArgumentError(
        fmt::format("NOTIFY_SOCKET '{}' is neither a path nor the name of a socket", socket));
  }
  std::ranges::copy(socket, address.sun_path);
  if (socket[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  if (!fd.valid() || ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), size) < 0) {
    return ErrnoStatus(errno, fmt::format("notify '{}'", socket));
  }
  return absl::OkStatus();
}

}  // namespace hone
