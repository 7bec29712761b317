#include "runtime/shared_object.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/core/status_macros.h"
#include "runtime/message.h"

namespace hone::runtime {
namespace {

const char* MachineName(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_386: return "i386";
    case EM_RISCV: return "riscv";
    default: return "another machine";
  }
}

Status WriteAll(int fd, std::span<const std::byte> bytes, const std::string& what) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError(errno, what);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

Status CheckElf(std::span<const std::byte> bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof(header)) return Invalid("code: too short for an ELF file");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return Invalid("code: not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != EM_X86_64) {
    return Invalid("code: made for ", MachineName(header.e_machine),
                   "; this runtime is for x86-64");
  }
  if (header.e_type != ET_DYN) return Invalid("code: not a shared object");
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > bytes.size() ||
      header.e_phnum > (bytes.size() - header.e_phoff) / sizeof(Elf64_Phdr)) {
    return Invalid("code: program headers lie outside the file");
  }
  bool dynamic = false;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    if (segment.p_offset > bytes.size() || segment.p_filesz > bytes.size() - segment.p_offset ||
        segment.p_filesz > segment.p_memsz) {
      return Invalid("code: segment ", i, " lies outside the file");
    }
    dynamic = dynamic || segment.p_type == PT_DYNAMIC;
  }
  if (!dynamic) return Invalid("code: no dynamic segment");
  return {};
}

SharedObject::SharedObject(SharedObject&& other) noexcept
    : fd_(std::move(other.fd_)), handle_(std::exchange(other.handle_, nullptr)) {}

SharedObject& SharedObject::operator=(SharedObject&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(handle_, other.handle_);
  return *this;
}

SharedObject::~SharedObject() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

Result<SharedObject> SharedObject::Load(std::span<const std::byte> bytes, const std::string& name) {
  HONE_RETURN_IF_ERROR(CheckElf(bytes));
  SharedObject object;
  object.fd_.Reset(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!object.fd_.valid()) return SystemError(errno, "cannot make a memory file for code");
  HONE_RETURN_IF_ERROR(WriteAll(object.fd_.get(), bytes, "cannot copy code into memory"));
  if (::fcntl(object.fd_.get(), F_ADD_SEALS,
              F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return SystemError(errno, "cannot seal the memory file of code");
  }
  const std::string path = Message("/proc/self/fd/", object.fd_.get());
  object.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object.handle_ == nullptr) {
    const char* error = ::dlerror();
    return Invalid("cannot load the code of '", name, "': ", error == nullptr ? "unknown" : error);
  }
  return object;
}

Result<void*> SharedObject::Symbol(const std::string& symbol) const {
  void* address = handle_ == nullptr ? nullptr : ::dlsym(handle_, symbol.c_str());
  if (address == nullptr) return Invalid("the code has no symbol '", symbol, "'");
  return address;
}

}  // namespace hone::runtime
