#include <filesystem>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command.h"
#include "client/exit_code.h"

namespace hone::client {
namespace {

struct CacheSize {
  int64_t files = 0;
  int64_t bytes = 0;
};

/// A folder that is not there holds nothing.
absl::StatusOr<CacheSize> Measure(const std::string& folder) {
  CacheSize size;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(folder, error);
  if (error == std::errc::no_such_file_or_directory) return size;
  for (; !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    std::error_code entry_error;
    if (!it->is_regular_file(entry_error)) continue;
    const auto bytes = it->file_size(entry_error);
    if (entry_error) continue;  // deleted meanwhile
    ++size.files;
    size.bytes += static_cast<int64_t>(bytes);
  }
  if (error) return ErrnoStatus(error.value(), fmt::format("read folder '{}'", folder));
  return size;
}

}  // namespace

absl::Status RunCache(CommandContext& context) {
  const std::string& folder = context.environment.cache_folder;
  if (folder.empty()) {
    return WithExitCode(
        absl::NotFoundError("there is no home folder, hence no cache; set HOME or XDG_CACHE_HOME"),
        ExitCode::kUsage);
  }
  HONE_ASSIGN_OR_RETURN(const CacheSize size, Measure(folder));
  const bool clear = context.arguments.Text("ACTION") == "clear";
  if (clear) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (error) return ErrnoStatus(error.value(), fmt::format("delete '{}'", folder));
  }
  if (context.json()) {
    context.json_result =
        nlohmann::ordered_json(
            {{"folder", folder}, {"files", size.files}, {"bytes", size.bytes}, {"cleared", clear}})
            .dump();
    return absl::OkStatus();
  }
  context.out << fmt::format("{}: {} files, {:.1f} MB{}\n", folder, size.files,
                             static_cast<double>(size.bytes) * 1e-6, clear ? ", deleted" : "");
  return absl::OkStatus();
}

}  // namespace hone::client
