#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "client/command.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/user_cache.h"

namespace hone::client {
namespace {

std::string UsageText(const std::string& folder, const measure::CacheUsage& usage, int64_t limit_mb,
                      bool cleared) {
  std::string text = fmt::format("{}: {} files, {:.2f} MB of at most {} MB{}\n", folder,
                                 usage.TotalFiles(), static_cast<double>(usage.TotalBytes()) * 1e-6,
                                 limit_mb, cleared ? ", deleted" : "");
  for (int kind = 0; kind < measure::kNumCacheKinds && !cleared; ++kind) {
    text += fmt::format("  {:<9} {:>6} files, {:>9.2f} MB\n",
                        measure::CacheKindName(static_cast<measure::CacheKind>(kind)),
                        usage.files[kind], static_cast<double>(usage.bytes[kind]) * 1e-6);
  }
  return text;
}

nlohmann::ordered_json UsageJson(const std::string& folder, const measure::CacheUsage& usage,
                                 int64_t limit_mb, bool cleared) {
  nlohmann::ordered_json object = {{"folder", folder},
                                   {"files", usage.TotalFiles()},
                                   {"bytes", usage.TotalBytes()},
                                   {"limit_bytes", limit_mb * 1'000'000},
                                   {"cleared", cleared}};
  for (int kind = 0; kind < measure::kNumCacheKinds; ++kind) {
    object[std::string(measure::CacheKindName(static_cast<measure::CacheKind>(kind)))] = {
        {"files", usage.files[kind]}, {"bytes", usage.bytes[kind]}};
  }
  return object;
}

}  // namespace

absl::Status RunCache(CommandContext& context) {
  const std::string& folder = context.environment.cache_folder;
  if (folder.empty()) {
    return WithExitCode(
        absl::NotFoundError("there is no home folder, hence no cache; set HOME or XDG_CACHE_HOME"),
        ExitCode::kUsage);
  }
  measure::DiskCache cache = LookAtUserCache(context.environment);
  if (!cache.why_unused().empty()) {
    return absl::PermissionDeniedError(fmt::format(
        "the cache in '{}' is not used: {}; commands work without it", folder, cache.why_unused()));
  }
  const measure::CacheUsage usage = cache.Usage();
  const bool clear = context.arguments.Text("ACTION") == "clear";
  if (clear) {
    cache.Clear();
    if (const int64_t left = cache.Usage().TotalFiles(); left > 0) {
      return absl::PermissionDeniedError(
          fmt::format("{} of {} files in '{}' cannot be deleted; delete the folder by hand", left,
                      usage.TotalFiles(), folder));
    }
  }
  const int64_t limit_mb = context.arguments.Integer("cache-mb");
  context.json_result = JsonText(UsageJson(folder, usage, limit_mb, clear));
  if (!context.json()) context.out << UsageText(folder, usage, limit_mb, clear);
  return absl::OkStatus();
}

}  // namespace hone::client
