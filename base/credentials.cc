#include "base/credentials.h"

#include <arpa/inet.h>
#include <sys/stat.h>

#include <cerrno>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"

namespace hone {

absl::StatusOr<Credentials> ReadCredentials(const std::string& folder) {
  Credentials c;
  const std::string key = folder + "/key.pem";
  struct stat info {};
  if (::stat(key.c_str(), &info) != 0) return ErrnoStatus(errno, fmt::format("read '{}'", key));
  if ((info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("others can read the key '{0}'; run: chmod 600 {0}", key));
  }
  HONE_ASSIGN_OR_RETURN(c.key, ReadFile(key));
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
