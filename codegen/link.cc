#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

#include "base/core/unique_fd.h"
#include "base/file.h"
#include "codegen/codegen.h"
#include "codegen/llvm_target.h"

LLD_HAS_DRIVER(elf)

namespace hone::codegen {
namespace {

absl::StatusOr<UniqueFd> ObjectInMemory(const std::string& bytes) {
  UniqueFd fd(memfd_create("hone-object", MFD_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "make a file in memory for the linker");
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "write an object for the linker");
    done += static_cast<size_t>(count);
  }
  return fd;
}

/// A folder for the linker's output, which LLD makes under another name and renames: a file in
/// memory would not do. Removed with what it holds.
class OutputFolder {
 public:
  OutputFolder() {
    for (const char* base : {"/dev/shm", "/tmp"}) {
      path_ = std::string(base) + "/hone-link-XXXXXX";
      if (mkdtemp(path_.data()) != nullptr) return;
    }
    error_ = ErrnoStatus(errno, "make a folder for the linker in /dev/shm or /tmp");
  }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder() {
    unlink(File().c_str());
    rmdir(path_.c_str());
  }

  const absl::Status& status() const { return error_; }
  std::string File() const { return path_ + "/kernel.so"; }

 private:
  std::string path_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<std::string> LinkShared(const std::vector<std::string>& objects) {
  std::vector<UniqueFd> files;
  for (const std::string& object : objects) {
    HONE_ASSIGN_OR_RETURN(UniqueFd file, ObjectInMemory(object));
    files.push_back(std::move(file));
  }
  const OutputFolder folder;
  HONE_RETURN_IF_ERROR(folder.status());
  std::vector<std::string> words = {
      "ld.lld",         "-shared",       "--threads=1",   "--build-id=none", "--hash-style=gnu",
      "--no-undefined", "--gc-sections", "-znoexecstack", "-znow",           "-o",
      folder.File()};
  for (const UniqueFd& file : files) words.push_back("/proc/self/fd/" + std::to_string(file.get()));
  std::vector<const char*> arguments;
  arguments.reserve(words.size());
  for (const std::string& word : words) arguments.push_back(word.c_str());

  std::string messages;
  llvm::raw_string_ostream stream(messages);
  {
    // LLD keeps its state in globals, some of them LLVM's.
    const std::unique_lock<std::shared_mutex> alone(LlvmOptionsMutex());
    const lld::Result result =
        lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
    SetLlvmOptions();
    if (result.retCode != 0) return absl::InvalidArgumentError("linking failed: " + messages);
  }
  return ReadFile(folder.File());
}

}  // namespace hone::codegen
