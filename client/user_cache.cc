#include "client/user_cache.h"

#include "fmt/format.h"

#include "base/versions.h"
#include "client/log_trace_source.h"

namespace hone::client {

std::shared_ptr<measure::DiskCache> OpenUserCache(const Arguments& arguments,
                                                  const Environment& environment) {
  const int64_t megabytes = arguments.Integer("cache-mb");
  if (megabytes == 0) return nullptr;
  measure::DiskCacheOptions options;
  options.folder = environment.cache_folder;
  options.limit_bytes = megabytes * 1'000'000;
  // The program too, which computes the oracle's values: another build of it asks anew.
  options.identity = fmt::format("{} {} {}", kProgramVersion, BuilderVersionText(),
                                 measure::FileIdentity("/proc/self/exe"));
  return std::make_shared<measure::DiskCache>(std::move(options));
}

measure::DiskCache LookAtUserCache(const Environment& environment) {
  return measure::DiskCache({.folder = environment.cache_folder, .make_folder = false});
}

}  // namespace hone::client
