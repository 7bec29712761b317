#include "base/credentials.h"

#include <arpa/inet.h>
#include <sys/stat.h>

#include <cerrno>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"

namespace hone {

absl::StatusOr<std::string> ReadKey(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, fmt::format("read '{}'", path));
  if ((info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("others can read the key '{0}'; run: chmod 600 {0}", path));
  }
  return ReadFile(path);
}

absl::StatusOr<Credentials> ReadCredentials(const std::string& folder) {
  Credentials c;
  HONE_ASSIGN_OR_RETURN(c.key, ReadKey(folder + "/key.pem"));
  HONE_ASSIGN_OR_RETURN(c.certificate, ReadFile(folder + "/cert.pem"));
  HONE_ASSIGN_OR_RETURN(c.ca, ReadFile(folder + "/ca.pem"));
  return c;
}

bool IsLoopbackAddress(const std::string& address) {
  for (const char* prefix : {"[::1]:", "localhost:", "unix:"}) {
    if (address.rfind(prefix, 0) == 0) return true;
  }
  // A name may begin with "127." too, and lead anywhere.
  const std::string host = address.substr(0, address.rfind(':'));
  in_addr ip{};
  return host.rfind("127.", 0) == 0 && ::inet_pton(AF_INET, host.c_str(), &ip) == 1;
}

}  // namespace hone
