#include "client/npz.h"

#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/status.h"
#include "client/terminal_text.h"

namespace hone::client {
namespace {

constexpr int64_t kMaxEntries = 65536;

struct ZipDiscard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct ZipFileClose {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using ZipArchive = std::unique_ptr<zip_t, ZipDiscard>;

absl::StatusOr<std::string> ReadEntry(zip_t* archive, uint64_t index, uint64_t size) {
  std::unique_ptr<zip_file_t, ZipFileClose> file(zip_fopen_index(archive, index, 0));
  if (!file) return absl::InvalidArgumentError(zip_strerror(archive));
  std::string bytes;
  // Grown as data really arrives: a size that lies costs nothing.
  constexpr uint64_t kChunk = uint64_t{1} << 24;
  while (bytes.size() < size) {
    const size_t had = bytes.size();
    bytes.resize(had + std::min(kChunk, size - had));
    const zip_int64_t got = zip_fread(file.get(), bytes.data() + had, bytes.size() - had);
    if (got < 0) return absl::InvalidArgumentError(zip_file_strerror(file.get()));
    bytes.resize(had + static_cast<size_t>(got));
    if (got == 0) break;
  }
  // One more byte makes libzip compare the checksum at the end of the data.
  char extra = 0;
  const zip_int64_t more = zip_fread(file.get(), &extra, 1);
  if (more < 0) return absl::InvalidArgumentError(zip_file_strerror(file.get()));
  if (more > 0 || bytes.size() != size) {
    return absl::InvalidArgumentError("its length is not the one in the archive's directory");
  }
  return bytes;
}

absl::StatusOr<ZipArchive> OpenForReading(const std::string& path) {
  int error = 0;
  ZipArchive archive(zip_open(path.c_str(), ZIP_RDONLY, &error));
  if (archive) return archive;
  const int system_error = errno;
  zip_error_t described;
  zip_error_init_with_code(&described, error);
  const std::string reason = zip_error_strerror(&described);
  zip_error_fini(&described);
  if (error == ZIP_ER_OPEN || error == ZIP_ER_NOENT || error == ZIP_ER_READ) {
    return UnreadableFile(error == ZIP_ER_NOENT ? ENOENT : system_error, path);
  }
  return absl::InvalidArgumentError(fmt::format(
      "cannot read '{}': not an .npz archive ({}); write it with numpy.savez", path, reason));
}

/// Whether a name is UTF-8 without a NUL: what the name of an entry can be.
bool IsText(const std::string& name) {
  if (name.find('\0') != std::string::npos) return false;
  try {
    (void)nlohmann::json(name).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

absl::Status AddEntry(zip_t* archive, const std::string& name, const std::string& bytes) {
  zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
  if (source == nullptr) return absl::ResourceExhaustedError(zip_strerror(archive));
  const zip_int64_t index =
      zip_file_add(archive, (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return absl::InvalidArgumentError(fmt::format("entry '{}': {}", name, zip_strerror(archive)));
  }
  const auto entry = static_cast<zip_uint64_t>(index);
  constexpr zip_uint16_t kFirstDosDate = (1 << 5) | 1;  // 1 January 1980: no time enters the bytes
  if (zip_set_file_compression(archive, entry, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, entry, 0, kFirstDosDate, 0) != 0) {
    return absl::InternalError(fmt::format("entry '{}': {}", name, zip_strerror(archive)));
  }
  return absl::OkStatus();
}

}  // namespace

const graph::TensorData* FindTensor(const NamedTensors& tensors, std::string_view name) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return &tensor;
  }
  return nullptr;
}

absl::StatusOr<NamedTensors> ReadNpz(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const ZipArchive archive, OpenForReading(path));
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  if (entries > kMaxEntries) {
    return absl::InvalidArgumentError(
        fmt::format("cannot read '{}': {} entries, at most {}", path, entries, kMaxEntries));
  }
  NamedTensors tensors;
  std::set<std::string> seen;
  for (uint64_t i = 0; i < static_cast<uint64_t>(entries); ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE;
    if (zip_stat_index(archive.get(), i, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded) {
      return absl::InvalidArgumentError(
          fmt::format("cannot read '{}': entry {} is damaged", path, i));
    }
    std::string name = stat.name;
    const std::string where = fmt::format("cannot read '{}', entry '{}'", path, name);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(where + ": there are two of that name");
    }
    if (stat.size > static_cast<zip_uint64_t>(kMaxArrayBytes)) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {} bytes, at most {}", where, uint64_t{stat.size}, kMaxArrayBytes));
    }
    auto bytes = ReadEntry(archive.get(), i, stat.size);
    if (!bytes.ok()) return Annotate(bytes.status(), where);
    auto tensor = ParseNpy(*bytes);
    if (!tensor.ok()) return Annotate(tensor.status(), where);
    tensors.emplace_back(std::move(name), *std::move(tensor));
  }
  return tensors;
}

absl::Status WriteNpz(const std::string& path, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (IsText(name)) continue;
    return absl::InvalidArgumentError(
        fmt::format("cannot write '{}': an archive has no entry for the tensor '{}', whose name is "
                    "not UTF-8 or "
                    "has a NUL; give it another name in the model",
                    path, TerminalText(name)));
  }
  // libzip renames its own file onto `path`, also onto a device, which would take that from
  // everybody.
  std::error_code absent;
  const auto kind = std::filesystem::status(path, absent).type();
  if (!absent && kind != std::filesystem::file_type::regular &&
      kind != std::filesystem::file_type::not_found) {
    return absl::InvalidArgumentError(
        fmt::format("cannot write '{}': it is no regular file", path));
  }
  // libzip deletes an archive without entries; an empty set is the directory's end record alone.
  if (tensors.empty()) {
    return WriteFileAtomically(path, "PK\5\6" + std::string(18, '\0'));
  }
  int error = 0;
  ZipArchive archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error));
  if (!archive) return ErrnoStatus(errno, fmt::format("write '{}'", path));
  std::vector<std::string> files;  // libzip reads them in zip_close
  files.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    files.push_back(FormatNpy(tensor));
    if (auto status = AddEntry(archive.get(), name, files.back()); !status.ok()) {
      return Annotate(status, fmt::format("cannot write '{}'", path));
    }
  }
  if (zip_close(archive.get()) != 0) {
    const int system_error = zip_error_code_system(zip_get_error(archive.get()));
    return ErrnoStatus(system_error != 0 ? system_error : EIO, fmt::format("write '{}'", path));
  }
  archive.release();  // zip_close freed it
  return absl::OkStatus();
}

}  // namespace hone::client
