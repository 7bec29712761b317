#include "client/shared_device.h"

#include <csignal>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "measure/device_quarantine.h"

namespace hone::client {

absl::Status SharedDevice::Usable() const { return measure::CheckQuarantine(folder_, name_); }

absl::Status SharedDevice::Share(measure::LocalMeasurerOptions& options) {
  HONE_ASSIGN_OR_RETURN(lock_, measure::DeviceLock::Open(folder_, name_));
  options.before_run = [this](const auto&) { lock_->Take(); };
  options.after_run = [this] { lock_->Free(); };
  options.on_bad_device = [this](const std::string& why) {
    const absl::Status put = measure::PutInQuarantine(folder_, name_, why);
    if (!put.ok()) err_ << fmt::format("{}\n", StatusMessage(put));
    bad_ = true;
    // As somebody who looks on would: the session finishes its record.
    std::raise(SIGTERM);
  };
  return absl::OkStatus();
}

}  // namespace hone::client
