#include "server/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace hone::server {

ProcessUsage ReadProcessUsage(const std::string& self) {
  ProcessUsage usage;
  std::ifstream file(self + "/stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  // The name may hold spaces and parentheses; after it come numbers (proc(5)), the state first.
  if (const size_t name = stat.rfind(')'); name != std::string::npos) {
    constexpr int kUser = 14, kSystem = 15, kVirtual = 23, kResident = 24;
    std::istringstream words(stat.substr(name + 1));
    std::string word;
    int64_t ticks = 0;
    for (int field = 3; words >> word && field <= kResident; ++field) {
      const bool wanted =
          field == kUser || field == kSystem || field == kVirtual || field == kResident;
      const int64_t value = wanted ? std::strtoll(word.c_str(), nullptr, 10) : 0;
      if (field == kUser || field == kSystem) ticks += value;
      if (field == kVirtual) usage.virtual_bytes = value;
      if (field == kResident) usage.resident_bytes = value * ::sysconf(_SC_PAGE_SIZE);
    }
    usage.cpu_seconds = static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  std::error_code error;
  const std::filesystem::directory_iterator files(self + "/fd", error);
  // One of them is the folder that is being read.
  if (!error) usage.open_files = std::distance(begin(files), end(files)) - 1;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    usage.most_files = static_cast<int64_t>(limit.rlim_cur);
  }
  return usage;
}

}  // namespace hone::server
