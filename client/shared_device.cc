#include "client/shared_device.h"

#include <csignal>

#include "fmt/format.h"

#include "base/status.h"
#include "client/device_changes.h"
#include "measure/device_quarantine.h"

namespace hone::client {

absl::Status SharedDevice::Usable() const {
  return measure::CheckQuarantine(folder_, device_.lock);
}

absl::Status SharedDevice::Share(measure::LocalMeasurerOptions& options, db::Database& log) {
  HONE_ASSIGN_OR_RETURN(const std::string changes, DeviceChangesText(log, device_));
  err_ << changes;
  HONE_ASSIGN_OR_RETURN(lock_, measure::DeviceLock::Open(folder_, device_.lock));
  options.before_run = [this](const auto&) { lock_->Take(); };
  options.after_run = [this] { lock_->Free(); };
  options.on_bad_device = [this](const std::string& why) {
    const absl::Status put = measure::PutInQuarantine(folder_, device_.lock, why);
    if (!put.ok()) err_ << fmt::format("{}\n", StatusMessage(put));
    bad_ = true;
    // As somebody who looks on would: the session finishes its record.
    std::raise(SIGTERM);
  };
  return absl::OkStatus();
}

}  // namespace hone::client
