#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "ir/arithmetic_unit.h"
#include "ir/plan.h"
#include "ir/target.h"

// The `model.hone` file: docs/formats/package.md describes its bytes.
namespace hone::runtime {

/// Texts of a package take at most as many bytes.
inline constexpr size_t kMaxTextBytes = 4096;

/// Where the code of one kernel came from, and what it does.
struct PackageKernel {
  std::string rung;          ///< of the look-up ladder: "exact", "threads", "nearest", "default"
  std::string record_id;     ///< of the tuning log; empty for the default
  std::string content_hash;  ///< of the record's content; empty for the default
  std::string name;          ///< its operators and shape, for people
  /// Arithmetic of one run at least; a multiply-add counts as two. The formats before 5 tell it as
  /// if all of it were f32's.
  ir::ByUnit<int64_t> operations{};
  int64_t bytes = 0;  ///< moved in one run at least

  int64_t flop() const { return std::accumulate(operations.begin(), operations.end(), int64_t{0}); }

  friend bool operator==(const PackageKernel&, const PackageKernel&) = default;
};

/// How far a model's outputs were from those in f32, in the output where it is most. Parts of 10^9.
struct PackageError {
  int64_t noise_ppb = 0;  ///< root of Σ (y - r)² / Σ r²
  int64_t worst_ppb = 0;  ///< max |y - r| / max |r|

  friend bool operator==(const PackageError&, const PackageError&) = default;
};

/// What a package says about itself.
struct PackageInfo {
  std::string target;                  ///< resolved text, as ir::ParseTarget reads it
  std::string device_class;            ///< of the records that were looked up; may be empty
  std::string program;                 ///< version of Hone that wrote it
  std::string precision = "f32";       ///< of products of f32: "f32" or "bf16"
  std::string accuracy = "default";    ///< class that the schedules keep to
  std::optional<PackageError> error;   ///< nothing: in f32, or not measured
  std::vector<PackageKernel> kernels;  ///< one for each kernel of the plan, in its order

  friend bool operator==(const PackageInfo&, const PackageInfo&) = default;
};

/// A package in memory. `constants` and `code` refer to bytes of somebody else: of the caller when
/// writing, of the parsed file when reading.
struct Package {
  PackageInfo info;
  ir::Plan plan;
  std::span<const std::byte> constants;  ///< at a page boundary of the file
  std::span<const std::byte> code;       ///< an ELF shared object; empty when there are no kernels
  ir::Target target;                     ///< info.target, parsed; where it was read from a file
};

/// What a file holds: packages of one model for different targets, the best first where nothing
/// else tells. They have the same inputs and outputs, and their `constants` are the same bytes.
using Variants = std::vector<Package>;
inline constexpr size_t kMaxVariants = 16;

/// The file's bytes. The same package gives the same bytes everywhere. Prologue texts are not
/// stored. kInvalidArgument when CheckPackage refuses it: a package that would not load is never
/// written.
Result<std::string> SerializePackage(const Package& package);
Result<std::string> SerializePackages(const Variants& variants);

/// Writes it to `path`, all or nothing: to a file beside it, then fsync, rename, fsync of the
/// folder; what is not a regular file (a pipe, /dev/stdout) is written in place. Constants and code
/// are not copied in memory. Further errors: kInvalidArgument for a folder, kPermissionDenied,
/// kNotFound, kResourceExhausted (no space), each with the path.
Status WritePackage(const Package& package, const std::string& path);
Status WritePackages(const Variants& variants, const std::string& path);

/// Reads and checks everything that can be checked without running code: header, checksums, bounds,
/// the plan (CheckPlan), the ELF's frame. What it accepts is exactly what SerializePackages of this
/// format's Hone would write; the formats before are read too. `bytes` must stay as long as the
/// result's spans are used. Errors: kInvalidArgument (not a package, or a malformed one), kDataLoss
/// (a checksum is wrong, or the file is cut short), kFailedPrecondition (made for a newer runtime
/// or format, or for one that is too old).
Result<Variants> ParsePackages(std::span<const std::byte> bytes);
/// The same of a file with one; kInvalidArgument for several.
Result<Package> ParsePackage(std::span<const std::byte> bytes);

/// The rules that hold for every package, written or read (docs/formats/package.md, "Rules").
Status CheckPackage(const Package& package);
Status CheckPackages(const Variants& variants);

}  // namespace hone::runtime
