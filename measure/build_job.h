#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "base/status.h"
#include "ir/artifact.h"
#include "schedule/lower.h"

// What hone-builder is asked and what it answers, and both as payloads of measure/wire.h. Decoders
// trust nothing: kDataLoss for anything that is not what the encoder wrote.
namespace hone::measure {

/// One kernel to make.
struct KernelJob {
  std::string workload;       ///< text
  std::string trace;          ///< text; empty: the default schedule
  schedule::Binding binding;  ///< empty: dense
  std::string prefix;  ///< its symbols are prefix_p0, prefix_p1, …; unique within what is linked
};

enum class BuildOutput : uint8_t {
  kSharedObject = 0,  ///< all kernels linked: what a device loads, on a CPU an ELF shared object
  kObjects = 1,       ///< a relocatable object per kernel, for a LinkJob
  kAssembly = 2,      ///< the text of each kernel's code (codegen::Assembly), nothing linked
};

struct BuildJob {
  std::string target;  ///< resolved text, see ir::ParseTarget
  std::vector<KernelJob> kernels;
  BuildOutput output = BuildOutput::kSharedObject;
  /// Makes the builder misbehave, for tests; heeded only by one that was started with --test-hooks:
  /// "crash", "hang", "memory", "kill-compiling" and "kill-compiled" (SIGKILL before and after),
  /// "environment", "read" and "signal" (aborts if there is one, if it can read its own program, if
  /// it can have its parent killed).
  std::string test_hook = {};
};

/// The answer for one kernel. `status` not ok: nothing else means anything, and the shared object
/// is without this kernel. kInvalidArgument: the Workload or Trace is refused; others: Hone failed.
struct BuiltKernel {
  absl::Status status;
  ir::Artifact artifact;  ///< with the prologue's text
  std::string trace;      ///< text of the Trace used (the default's when none was given)
  std::string object;     ///< kObjects: ELF relocatable; kAssembly: text
  int64_t lower_ns = 0;   ///< parse, replay and lower
  int64_t codegen_ns = 0;
};

struct BuildReply {
  std::string shared_object;  ///< kSharedObject: ELF; empty when every kernel failed
  std::vector<BuiltKernel> kernels;
  int64_t link_ns = 0;
};

/// Links objects of kernels into what a device loads.
struct LinkJob {
  std::string target;  ///< that they were made for
  std::vector<std::string> objects;
};

struct LinkReply {
  absl::Status status;
  std::string shared_object;
};

/// Links files on this disk into a shared library for C programs; all paths are absolute.
struct LibraryJob {
  std::vector<std::string> objects;
  std::vector<std::string> archives;  ///< every member is taken, what nobody needs goes again
  std::vector<std::string> exported;  ///< names or patterns (hone_*); nothing else is visible
  std::string soname;
  std::string output;  ///< replaced or made
};

/// Equal for Bindings that give the same code; empty when all buffers are dense.
std::string BindingText(const schedule::Binding& binding);

std::string EncodeBuildJob(const BuildJob& job);
absl::StatusOr<BuildJob> DecodeBuildJob(std::string_view payload);
std::string EncodeBuildReply(const BuildReply& reply);
absl::StatusOr<BuildReply> DecodeBuildReply(std::string_view payload);
std::string EncodeLinkJob(const LinkJob& job);
absl::StatusOr<LinkJob> DecodeLinkJob(std::string_view payload);
std::string EncodeLinkReply(const LinkReply& reply);
absl::StatusOr<LinkReply> DecodeLinkReply(std::string_view payload);
std::string EncodeLibraryJob(const LibraryJob& job);
absl::StatusOr<LibraryJob> DecodeLibraryJob(std::string_view payload);
/// The answer to a LibraryJob is its status alone.
std::string EncodeLibraryReply(const absl::Status& status);
/// The answer; what is no answer is kDataLoss.
absl::Status DecodeLibraryReply(std::string_view payload);

}  // namespace hone::measure
