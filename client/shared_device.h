#pragma once

#include <atomic>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"

#include "db/database.h"
#include "measure/device.h"
#include "measure/device_lock.h"
#include "measure/local_measurer.h"

namespace hone::client {

/// A device that several programs of this machine may measure on, one candidate at a time. For the
/// thread of a tuning; what it adds to a measurer runs on that one's.
class SharedDevice {
 public:
  /// `folder`: of locks and quarantines. `err` outlives it.
  SharedDevice(std::string folder, const measure::HostDevice& device, std::ostream& err)
      : folder_(std::move(folder)), device_(device), err_(err) {}

  /// kFailedPrecondition: it is in quarantine, and why.
  absl::Status Usable() const;
  /// Has the measurer, which it outlives, take the lock around each run. Where the device stays bad
  /// it is put in quarantine, and the tuning is asked to end as by a signal. Tells what has changed
  /// about the device since `log` knows it.
  absl::Status Share(measure::LocalMeasurerOptions& options, db::Database& log);
  /// It was put in quarantine meanwhile.
  bool bad() const { return bad_; }

 private:
  const std::string folder_;
  const measure::HostDevice device_;
  std::ostream& err_;
  std::optional<measure::DeviceLock> lock_;
  std::atomic<bool> bad_ = false;
};

}  // namespace hone::client
