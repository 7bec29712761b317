#include "base/farm_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "fmt/format.h"

#include "base/status.h"

namespace hone {
namespace {

constexpr int kLargestPort = 65535;

/// A host without its brackets, and the port as it stands there.
struct Parts {
  std::string host;
  std::optional<std::string> port;
};

bool IsV6(const std::string& host) {
  in6_addr ip{};
  // "%eth0" names the link of a link-local address.
  return ::inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &ip) == 1;
}

bool IsV4(const std::string& host) {
  in_addr ip{};
  return ::inet_pton(AF_INET, host.c_str(), &ip) == 1;
}

bool IsName(const std::string& host) {
  return !host.empty() && std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  });
}

std::optional<Parts> Split(const std::string& address) {
  if (IsV6(address)) return Parts{address, std::nullopt};
  const bool brackets = !address.empty() && address.front() == '[';
  const size_t host_end = brackets ? address.find(']') : address.find(':');
  if (brackets && host_end == std::string::npos) return std::nullopt;
  const size_t behind = brackets ? host_end + 1 : std::min(host_end, address.size());
  Parts parts{brackets ? address.substr(1, host_end - 1) : address.substr(0, behind), {}};
  if (brackets ? !IsV6(parts.host) : !IsName(parts.host)) return std::nullopt;
  if (behind == address.size()) return parts;
  if (address[behind] != ':') return std::nullopt;
  parts.port = address.substr(behind + 1);
  return parts;
}

absl::StatusOr<int> PortOf(const Parts& parts, const std::string& address, int least) {
  if (!parts.port) return kFarmPort;
  const std::string& text = *parts.port;
  const bool digits =
      !text.empty() && text.size() <= 5 &&
      std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  const int port = digits ? std::stoi(text) : -1;
  if (port >= least && port <= kLargestPort) return port;
  return absl::InvalidArgumentError(fmt::format("'{}': a port is a number from {} to {}, not '{}'",
                                                address, least, kLargestPort, text));
}

std::string Join(const std::string& host, int port) {
  return IsV6(host) ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace

absl::StatusOr<std::string> DialAddress(const std::string& address) {
  if (address.rfind("unix:", 0) == 0) return address;
  const std::optional<Parts> parts = Split(address);
  if (!parts) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is no address: give HOST or HOST:PORT, as tuner:7421 or [::1]:7421", address));
  }
  HONE_ASSIGN_OR_RETURN(const int port, PortOf(*parts, address, 1));
  return Join(parts->host, port);
}

absl::StatusOr<std::string> ListenAddress(const std::string& address) {
  if (address.rfind("unix:", 0) == 0) return address;
  const std::optional<Parts> parts = Split(address);
  // A name may lead to another machine, or to none until some other program runs.
  if (!parts || !(IsV4(parts->host) || IsV6(parts->host) || parts->host == "localhost")) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no address to listen on: give ADDRESS or ADDRESS:PORT, as "
                    "0.0.0.0:7421, [::]:7421 or 127.0.0.1",
                    address));
  }
  HONE_ASSIGN_OR_RETURN(const int port, PortOf(*parts, address, 0));
  return Join(parts->host, port);
}

}  // namespace hone
