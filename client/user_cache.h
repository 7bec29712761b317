#pragma once

#include <memory>

#include "client/command.h"
#include "measure/disk_cache.h"

namespace hone::client {

/// The caches of built kernels and oracle values in the user's cache folder, as --cache-mb says;
/// null where that is 0. One that cannot be used answers nothing and keeps nothing.
std::shared_ptr<measure::DiskCache> OpenUserCache(const Arguments& arguments,
                                                  const Environment& environment);

/// The same folder, to tell of it and to clear it, whatever --cache-mb says; makes nothing.
measure::DiskCache LookAtUserCache(const Environment& environment);

}  // namespace hone::client
