#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace hone::server {

/// A folder of its own for one test, removed in the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const bool memory = std::filesystem::is_directory("/dev/shm");
    std::string path =
        ((memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
         "hone-server-XXXXXX")
            .string();
    path_ = ::mkdtemp(path.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace hone::server
