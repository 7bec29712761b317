#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "ir/target.h"
#include "runtime/device.h"
#include "runtime/package.h"
#include "runtime/plan_check.h"
#include "runtime/region.h"

namespace hone::runtime {

/// Says whether this host can run the target's code, and if not, why.
using HostCanRun = bool (*)(const ir::Target& target, std::string* why);

/// The variant to run: of those that the host can run the one whose device may do most
/// (ir::MostFlopPerNs), code for more threads than `cores` behind the others, the first of equals.
/// They were read from a file. kFailedPrecondition: it can run none, and why not each.
Result<size_t> ChooseVariant(const Variants& variants, int cores,
                             HostCanRun host_can_run = ir::HostCanRun);

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
    /// Code for more threads is not taken where the file has other code. How many cores there are
    /// says who opens it: the runtime itself reads no file of the machine.
    int cores = kMaxThreads;
    HostCanRun host_can_run = ir::HostCanRun;
  };

  /// Reads `path`. Errors, each with the path: those of ParsePackage and Region::MapFile;
  /// kFailedPrecondition when this host lacks instructions the code needs (both sides are named).
  static Result<std::shared_ptr<const Executable>> Open(const std::string& path,
                                                        const Options& options);

  /// The same from memory, which is copied unless `in_place`.
  static Result<std::shared_ptr<const Executable>> OpenMemory(std::span<const std::byte> bytes,
                                                              const Options& options);

  /// What the variant that runs says of itself (ChooseVariant).
  const PackageInfo& info() const { return package_.info; }
  /// What the file has code for, in its order.
  const std::vector<std::string>& targets() const { return targets_; }

  const ir::Plan& plan() const { return package_.plan; }
  std::span<const std::byte> constants() const { return package_.constants; }

  /// Threads that the code can use: the most that any step of it is worth, or 1 where no phase is
  /// parallel.
  int threads() const { return threads_; }
  /// The package where its device can run it.
  const LoadedPlan& loaded() const { return *loaded_; }

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
  std::vector<std::string> targets_;
  std::unique_ptr<const LoadedPlan> loaded_;  // refers to package_
  int threads_ = 1;
};

}  // namespace hone::runtime
