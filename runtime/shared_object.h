#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/core/result.h"
#include "base/core/unique_fd.h"

namespace hone::runtime {

/// Checks the frame of an ELF shared object for this machine: header, program headers and the
/// dynamic segment lie inside `bytes`. kInvalidArgument otherwise. Nothing is mapped or run.
Status CheckElf(std::span<const std::byte> bytes);

/// A shared object loaded from memory: dlopen of a sealed memfd, so no file is needed and nobody
/// can change the code afterwards. Unloaded by the destructor. Movable; `Symbol` is thread-safe.
class SharedObject {
 public:
  SharedObject() = default;
  SharedObject(SharedObject&& other) noexcept;
  SharedObject& operator=(SharedObject&& other) noexcept;
  ~SharedObject();

  /// Copies and loads it (its constructors run: load only what you trust). `name` shows up in
  /// /proc/self/maps and in errors. kInvalidArgument when the loader refuses it, for instance for
  /// an undefined symbol; kResourceExhausted without memory or descriptors.
  static Result<SharedObject> Load(std::span<const std::byte> bytes, const std::string& name);

  /// Address of a symbol; kInvalidArgument when there is none of this name.
  Result<void*> Symbol(const std::string& symbol) const;

 private:
  // Kept open: the loader takes a second object for the first when the path /proc/self/fd/N is
  // equal.
  UniqueFd fd_;
  void* handle_ = nullptr;
};

}  // namespace hone::runtime
