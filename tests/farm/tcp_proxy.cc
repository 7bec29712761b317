#include "tests/farm/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/core/check.h"

namespace hone::farm {
namespace {

constexpr int kLookMs = 10;    // for what a test asks
constexpr int kWaitingMs = 2;  // for bytes that are not due yet
constexpr size_t kMostQueued = size_t{1} << 18;
constexpr int64_t kNsPerSecond = 1'000'000'000;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

void MakeReady(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void SendReset(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

struct TcpProxy::Way {
  struct Chunk {
    int64_t due_ns = 0;
    std::string bytes;
  };
  int from = -1, to = -1;
  std::deque<Chunk> queue;
  size_t queued = 0;
  int64_t last_ns = 0;  ///< since when trickling bytes are counted
  bool ended = false;   ///< nothing more comes
  bool told = false;    ///< and the other end knows
  bool broken = false;
};

struct TcpProxy::Link {
  UniqueFd client, server;
  std::array<Way, 2> ways;
  bool frozen = false;
};

TcpProxy::TcpProxy(int target_port)
    : target_port_(target_port), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  HONE_CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  HONE_CHECK(::listen(listener_.get(), SOMAXCONN) == 0);
  HONE_CHECK(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  MakeReady(listener_.get());
  thread_ = std::thread([this] { Loop(); });
}

TcpProxy::~TcpProxy() {
  stopping_.store(true);
  thread_.join();
}

std::string TcpProxy::address() const { return "127.0.0.1:" + std::to_string(port_); }

void TcpProxy::Accept() {
  for (;;) {
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) return;
    UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = Loopback(target_port_);
    // On loopback this answers at once.
    if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      SendReset(client.get());
      continue;
    }
    accepted_.fetch_add(1);
    MakeReady(client.get());
    MakeReady(server.get());
    auto link = std::make_unique<Link>();
    link->ways[0].from = link->ways[1].to = client.get();
    link->ways[1].from = link->ways[0].to = server.get();
    link->client = std::move(client);
    link->server = std::move(server);
    links_.push_back(std::move(link));
  }
}

void TcpProxy::Obey() {
  if (const int asked = resets_asked_.load(); asked != resets_) {
    resets_ = asked;
    for (const auto& link : links_) {
      SendReset(link->client.get());
      SendReset(link->server.get());
    }
    links_.clear();
  }
  if (const int asked = freezes_asked_.load(); asked != freezes_) {
    freezes_ = asked;
    for (const auto& link : links_) link->frozen = true;
  }
  if (const int asked = thaws_asked_.load(); asked != thaws_) {
    thaws_ = asked;
    for (const auto& link : links_) link->frozen = false;
  }
}

int64_t TcpProxy::Ready(const Way& way, int64_t now_ns) const {
  if (way.queue.empty() || way.queue.front().due_ns > now_ns) return 0;
  const auto there = static_cast<int64_t>(way.queue.front().bytes.size());
  const int64_t rate = trickle_.load();
  if (rate == 0) return there;
  return std::min(there, (now_ns - way.last_ns) * rate / kNsPerSecond);
}

void TcpProxy::Read(Way& way) {
  char buffer[16384];
  const ssize_t n = ::recv(way.from, buffer, sizeof buffer, 0);
  if (n > 0) {
    if (way.queue.empty()) way.last_ns = clock_.NowNs();
    way.queue.push_back({clock_.NowNs() + delay_ns_.load(), {buffer, static_cast<size_t>(n)}});
    way.queued += static_cast<size_t>(n);
  } else if (n == 0) {
    way.ended = true;
  } else if (errno != EAGAIN && errno != EINTR) {
    way.broken = true;
  }
}

void TcpProxy::Write(Way& way) {
  const int64_t now_ns = clock_.NowNs();
  while (const int64_t ready = Ready(way, now_ns)) {
    std::string& bytes = way.queue.front().bytes;
    const ssize_t n = ::send(way.to, bytes.data(), static_cast<size_t>(ready), MSG_NOSIGNAL);
    if (n < 0) {
      way.broken |= errno != EAGAIN && errno != EINTR;
      return;
    }
    bytes_.fetch_add(n);
    way.queued -= static_cast<size_t>(n);
    way.last_ns = now_ns;
    bytes.erase(0, static_cast<size_t>(n));
    if (bytes.empty()) way.queue.pop_front();
  }
  if (way.ended && way.queue.empty() && !std::exchange(way.told, true)) {
    ::shutdown(way.to, SHUT_WR);
  }
}

void TcpProxy::Loop() {
  while (!stopping_.load()) {
    std::vector<pollfd> fds = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    std::vector<Way*> ways = {nullptr};
    bool waiting = false;
    const int64_t now_ns = clock_.NowNs();
    for (const auto& link : links_) {
      if (link->frozen) continue;
      for (Way& way : link->ways) {
        if (!way.ended && way.queued < kMostQueued) {
          fds.push_back({.fd = way.from, .events = POLLIN, .revents = 0});
          ways.push_back(&way);
        }
        waiting |= !way.queue.empty();
        if (Ready(way, now_ns) > 0) {
          fds.push_back({.fd = way.to, .events = POLLOUT, .revents = 0});
          ways.push_back(&way);
        }
      }
    }
    ::poll(fds.data(), fds.size(), waiting ? kWaitingMs : kLookMs);
    for (size_t i = 1; i < fds.size(); ++i) {
      const bool reads = fds[i].events == POLLIN;
      if (fds[i].revents == 0) continue;
      if (reads) Read(*ways[i]);
    }
    for (const auto& link : links_) {
      if (link->frozen) continue;
      for (Way& way : link->ways) Write(way);
    }
    std::erase_if(links_, [](const auto& link) {
      const auto& [one, other] = link->ways;
      if (one.broken || other.broken) {
        SendReset(link->client.get());
        SendReset(link->server.get());
        return true;
      }
      return one.told && other.told;
    });
    if (fds.front().revents != 0) Accept();
    Obey();
  }
}

}  // namespace hone::farm
