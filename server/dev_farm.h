#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "base/subprocess.h"
#include "server/honed.h"

namespace hone::server {

/// A farm for trying out, all on this machine: honed in this process, one hone-worker as its child,
/// credentials of an authority of its own, log and all in a folder for temporary files that goes
/// with the object. It listens on loopback alone.
class DevFarm {
 public:
  /// `options` give ports (`listen`, `page_listen`), policy and versions; the rest is set here.
  /// Errors of Issue, of Honed::Start and of starting hone-worker, which stands beside this
  /// program.
  static absl::StatusOr<std::unique_ptr<DevFarm>> Start(HonedOptions options,
                                                        const MonotonicClock& clock,
                                                        const WallClock& wall_clock);
  ~DevFarm();
  DevFarm(const DevFarm&) = delete;
  DevFarm& operator=(const DevFarm&) = delete;

  const Honed& honed() const { return *honed_; }
  /// What a user types next: the page's address, a tuning and a list of devices.
  std::string Greeting() const;

 private:
  explicit DevFarm(std::string folder) : folder_(std::move(folder)) {}
  absl::Status StartWorker();

  const std::string folder_;
  std::unique_ptr<Honed> honed_;
  std::unique_ptr<Subprocess> worker_;
};

}  // namespace hone::server
