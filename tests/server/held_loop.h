#pragma once

#include <future>

#include "server/farm_loop.h"

namespace hone::server {

/// Keeps a FarmLoop in one work, so that what is posted meanwhile waits, until Release.
class HeldLoop {
 public:
  explicit HeldLoop(FarmLoop& loop) {
    loop.Post({.prepare =
                   [this](Farm&, db::FarmStore&, db::FarmUnit&, int64_t) {
                     held_.set_value();
                     go_.get_future().wait();
                     return absl::OkStatus();
                   },
               .done = {}});
    held_.get_future().wait();
  }
  HeldLoop(const HeldLoop&) = delete;
  HeldLoop& operator=(const HeldLoop&) = delete;

  /// Once, before it goes.
  void Release() { go_.set_value(); }

 private:
  std::promise<void> held_, go_;
};

}  // namespace hone::server
