#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "base/core/unique_fd.h"

namespace hone::farm {

/// A TCP proxy on loopback whose links a test makes bad. Connections that come while nobody listens
/// behind it are closed. Thread-safe.
class TcpProxy {
 public:
  explicit TcpProxy(int target_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  std::string address() const;

  /// From now on every byte takes so long, each way; 0: none.
  void SetDelay(int64_t ns) { delay_ns_.store(ns); }
  /// From now on at most so many bytes a second, each way of each connection; 0: no limit.
  void SetTrickle(int64_t bytes_a_second) { trickle_.store(bytes_a_second); }
  /// Ends all connections with RST to both ends.
  void Reset() { resets_asked_.fetch_add(1); }
  /// Nothing passes any more on the connections that are open now, and nobody is told: they are
  /// half-open until Reset. Later ones pass.
  void Freeze() { freezes_asked_.fetch_add(1); }
  /// What Freeze held back passes again, where both ends still wait.
  void Thaw() { thaws_asked_.fetch_add(1); }

  int64_t accepted() const { return accepted_.load(); }
  int64_t bytes() const { return bytes_.load(); }

 private:
  struct Way;
  struct Link;

  void Loop();
  void Accept();
  void Obey();
  void Read(Way& way);
  void Write(Way& way);
  /// Bytes of a way that may be written now.
  int64_t Ready(const Way& way, int64_t now_ns) const;

  const SystemMonotonicClock clock_;
  const int target_port_;
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<int64_t> delay_ns_{0}, trickle_{0}, accepted_{0}, bytes_{0};
  std::atomic<int> resets_asked_{0}, freezes_asked_{0}, thaws_asked_{0};
  std::atomic<bool> stopping_{false};
  int resets_ = 0, freezes_ = 0, thaws_ = 0;  // the thread's alone, as is
  std::vector<std::unique_ptr<Link>> links_;  // this
  std::thread thread_;
};

}  // namespace hone::farm
