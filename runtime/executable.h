#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "ir/target.h"
#include "runtime/kernel.h"
#include "runtime/package.h"
#include "runtime/region.h"
#include "runtime/shared_object.h"

namespace hone::runtime {

/// A loaded package: everything checked, constants mapped, code loaded. Immutable, hence
/// thread-safe; contexts share it. A package is code: load only what you trust.
class Executable {
 public:
  struct Options {
    /// Copy the constants into memory with huge pages instead of mapping the file: loading takes
    /// longer, large GEMMs gain 1 to 2 %, and the file may change afterwards.
    bool copy_constants = false;
    /// OpenMemory uses the memory where it is, which must stay until the executable ends and begin
    /// at a multiple of 64.
    bool in_place = false;
    /// Says whether this host can run the target's code (and if not, why).
    bool (*host_can_run)(const ir::Target& target, std::string* why) = ir::HostCanRun;
  };

  /// Reads `path`. Errors, each with the path: those of ParsePackage and Region::MapFile;
  /// kFailedPrecondition when this host lacks instructions the code needs (both sides are named).
  static Result<std::shared_ptr<const Executable>> Open(const std::string& path,
                                                        const Options& options);

  /// The same from memory, which is copied unless `in_place`.
  static Result<std::shared_ptr<const Executable>> OpenMemory(std::span<const std::byte> bytes,
                                                              const Options& options);

  const PackageInfo& info() const { return package_.info; }
  const ir::Plan& plan() const { return package_.plan; }
  const std::vector<Kernel>& kernels() const { return kernels_; }
  std::span<const std::byte> constants() const { return package_.constants; }

  /// Threads that the code was made for.
  int threads() const { return threads_; }
  /// Scratch bytes that each thread of a run needs.
  int64_t scratch_bytes() const { return scratch_bytes_; }

  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

 private:
  Executable() = default;
  static Result<std::shared_ptr<const Executable>> Load(Region file, const std::string& name,
                                                        const Options& options);
  Status Prepare(const std::string& name, const Options& options);

  Region file_;
  Region constants_copy_;
  Package package_;
  SharedObject code_;
  std::vector<Kernel> kernels_;  // of package_.plan.kernels, into code_
  int threads_ = 1;
  int64_t scratch_bytes_ = 0;
};

}  // namespace hone::runtime
