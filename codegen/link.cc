#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

#include "base/core/unique_fd.h"
#include "base/file.h"
#include "base/free_space.h"
#include "codegen/codegen.h"
#include "codegen/link_folder.h"
#include "codegen/llvm_target.h"

LLD_HAS_DRIVER(elf)

namespace hone::codegen {
namespace {

/// Free space beside that for the code. LLD maps its output, and where a disk has no room for a
/// page of it the process ends with SIGBUS: so there must be room for what others link meanwhile.
constexpr int64_t kLinkRoom = int64_t{16} << 20;

absl::StatusOr<UniqueFd> FileInMemory(const std::string& bytes) {
  UniqueFd fd(memfd_create("hone-link", MFD_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "make a file in memory for the linker");
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "write an object for the linker");
    done += static_cast<size_t>(count);
  }
  return fd;
}

absl::Status RunLinker(const std::vector<std::string>& words) {
  std::vector<const char*> arguments;
  arguments.reserve(words.size());
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  // LLD keeps its state in globals, some of them LLVM's.
  const std::unique_lock<std::shared_mutex> alone(LlvmOptionsMutex());
  const lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  SetLlvmOptions();
  if (result.retCode != 0) return absl::InvalidArgumentError("linking failed: " + messages);
  return absl::OkStatus();
}

std::string PathOf(const UniqueFd& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

absl::StatusOr<std::string> LinkIn(const std::string& base, const std::vector<UniqueFd>& files) {
  const LinkFolder folder(base);
  HONE_RETURN_IF_ERROR(folder.status());
  std::vector<std::string> words = {
      "ld.lld",         "-shared",       "--threads=1",   "--build-id=none", "--hash-style=gnu",
      "--no-undefined", "--gc-sections", "-znoexecstack", "-znow",           "-o",
      folder.File()};
  for (const UniqueFd& file : files) words.push_back(PathOf(file));
  HONE_RETURN_IF_ERROR(RunLinker(words));
  return ReadFile(folder.File());
}

std::string FolderText(const std::string& folder, int64_t free_bytes) {
  return "'" + folder + "' (" + std::to_string(free_bytes / 1024) + " KiB free)";
}

absl::Status NoRoom(const std::string& folders) {
  return absl::ResourceExhaustedError("no room to link in " + folders + "; make room there");
}

/// Paths of the C and C++ libraries that this process has loaded.
std::vector<std::string> SystemLibraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* list) {
        const std::string path = info->dlpi_name;
        const std::string name = path.substr(path.rfind('/') + 1);
        for (const char* wanted : {"libstdc++.so", "libm.so", "libgcc_s.so", "libc.so",
                                   "libpthread.so", "libdl.so", "ld-linux"}) {
          if (name.starts_with(wanted))
            static_cast<std::vector<std::string>*>(list)->push_back(path);
        }
        return 0;
      },
      &paths);
  return paths;
}

}  // namespace

absl::StatusOr<std::string> LinkShared(const std::vector<std::string>& objects,
                                       const std::vector<std::string>& bases) {
  std::vector<UniqueFd> files;
  int64_t needed = kLinkRoom;
  for (const std::string& object : objects) {
    HONE_ASSIGN_OR_RETURN(UniqueFd file, FileInMemory(object));
    files.push_back(std::move(file));
    needed += static_cast<int64_t>(object.size());
  }
  absl::Status failure;
  std::string full;
  for (const std::string& base : bases) {
    if (FreeBytes(base) >= needed) {
      absl::StatusOr<std::string> linked = LinkIn(base, files);
      if (linked.ok()) return linked;
      failure = linked.status();
      // The linker's words do not tell a disk that was filled from objects that do not fit.
      if (absl::IsInvalidArgument(failure) && FreeBytes(base) >= needed) return failure;
    }
    if (const int64_t free = FreeBytes(base); free < needed) {
      full += (full.empty() ? "" : ", ") + FolderText(base, free);
    }
  }
  return full.empty() ? failure : NoRoom(full);
}

absl::Status LinkLibrary(const LibraryLink& link) {
  std::string visible = "{ global:";
  for (const std::string& name : link.exported) visible += " " + name + ";";
  HONE_ASSIGN_OR_RETURN(const UniqueFd script, FileInMemory(visible + " local: *; };\n"));
  std::vector<std::string> words = {"ld.lld",
                                    "-shared",
                                    "--threads=1",
                                    "--build-id=none",
                                    "--hash-style=gnu",
                                    "--no-undefined",
                                    "--gc-sections",
                                    "--strip-debug",
                                    "--eh-frame-hdr",
                                    "-Bsymbolic",
                                    "-znoexecstack",
                                    "-znow",
                                    "--version-script=" + PathOf(script),
                                    "-soname=" + link.soname,
                                    "-o",
                                    link.output};
  words.insert(words.end(), link.objects.begin(), link.objects.end());
  words.push_back("--whole-archive");
  words.insert(words.end(), link.archives.begin(), link.archives.end());
  words.insert(words.end(), {"--no-whole-archive", "--as-needed"});
  for (std::string& path : SystemLibraries()) words.push_back(std::move(path));
  const std::string folder = link.output.substr(0, link.output.rfind('/') + 1);
  const int64_t free = FreeBytes(folder.empty() ? "." : folder);
  if (free < kLinkRoom) return NoRoom(FolderText(folder, free));
  return RunLinker(words);
}

}  // namespace hone::codegen
