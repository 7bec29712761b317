#include "db/sqlite_header.h"

#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "fmt/core.h"

#include "base/sha256.h"
#include "db/log_file.h"

namespace hone::db {
namespace {

constexpr int64_t kHeaderBytes = 100;
// Offsets of https://www.sqlite.org/fileformat.html#the_database_header.
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kReadVersionAt = 19;
constexpr size_t kUserVersionAt = 60;
constexpr size_t kApplicationIdAt = 68;

uint32_t BigEndian32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

absl::Status NotALog(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format(
      "'{}' is not a tuning log of Hone: {}; it was left as it is, name another file", path, why));
}

}  // namespace

absl::StatusOr<LogHeader> ReadLogHeader(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return ErrnoStatus(errno, fmt::format("open log '{}'", path));
    return absl::NotFoundError(
        fmt::format("there is no log '{}'; `hone tune MODEL --db {}` makes one", path, path));
  }
  if (!S_ISREG(info.st_mode)) return NotALog(path, "it is not a regular file");
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection,
                        Connection::Open(path, Connection::Access::kImmutable));
  HONE_ASSIGN_OR_RETURN(const std::string bytes, connection->ReadRaw(0, kHeaderBytes));
  if (bytes.size() < static_cast<size_t>(kHeaderBytes) || bytes.substr(0, 16) != kMagic) {
    return NotALog(path, "it is not an SQLite file");
  }
  const uint32_t application = BigEndian32(bytes, kApplicationIdAt);
  if (application != kApplicationId) {
    return NotALog(path, fmt::format("it is an SQLite file of another program (application id "
                                     "{:#x})",
                                     application));
  }
  return LogHeader{.schema_version = BigEndian32(bytes, kUserVersionAt),
                   .live = bytes[kReadVersionAt] == 2};
}

FileKind KindOfFile(const std::string& path) {
  const absl::StatusOr<LogHeader> header = ReadLogHeader(path);
  if (!header.ok()) return FileKind::kOther;
  return header->live ? FileKind::kLog : FileKind::kSnapshot;
}

absl::StatusOr<std::string> FileSha256(Connection& connection) {
  constexpr int64_t kPieceBytes = int64_t{1} << 20;
  Sha256 sha;
  for (int64_t offset = 0;; offset += kPieceBytes) {
    HONE_ASSIGN_OR_RETURN(const std::string piece, connection.ReadRaw(offset, kPieceBytes));
    sha.Update(piece);
    if (piece.size() < static_cast<size_t>(kPieceBytes)) return sha.FinishHex();
  }
}

}  // namespace hone::db
