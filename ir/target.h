#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/check.h"

// std only: the runtime includes this file.
namespace hone::ir {

/// What a kind of device adds to a Target; each kind derives its own (ir/cpu/cpu_target.h).
struct TargetDetails {
  virtual ~TargetDetails() = default;
};

/// What code is made for. Everything but the text is a function of the text, so that grouping,
/// defaults and code are the same on every machine. Values are nominal, never probed.
struct Target {
  std::string text;    ///< resolved: "cpu:avx512,threads=2"; `native` and N never stand here
  std::string kind;    ///< "cpu": the text before its first colon
  std::string family;  ///< "cpu:avx512": the text up to its options; what instructions it has
  int threads = 1;     ///< of the host that run a kernel together; 1 where a device runs it
  std::shared_ptr<const TargetDetails> details;

  /// What the kind adds. Only the folders of a kind know its Details, and have Targets of it alone.
  template <typename Details>
  const Details& As() const {
    HONE_CHECK(details != nullptr) << "target '" << text << "' was not parsed";
    return static_cast<const Details&>(*details);
  }
};

/// A kind of device, as far as its Targets go. What else a kind needs stands in a registry of its
/// own on each floor (ir/per_kind.h). Objects have no state: thread-safe.
class TargetKind {
 public:
  virtual ~TargetKind() = default;

  virtual std::string_view name() const = 0;  ///< "cpu"
  virtual std::string_view accepted()
      const = 0;  ///< "cpu:avx2|avx512[+vnni+bf16+amx],threads=1..1024"

  /// Fills in a target whose text is `text`, which begins with the name and a colon; the text
  /// becomes the normal form. False sets *why to what is bad.
  virtual bool Parse(std::string_view text, Target* target, std::string* why) const = 0;
  /// See ir::ResolveNative.
  virtual std::string ResolveNative(std::string_view text, int threads) const = 0;
  /// See ir::HostCanRun.
  virtual bool HostCanRun(const Target& target, std::string* why) const = 0;
  /// Whether a device whose best target is `device` has the instructions of `code`; both are of
  /// this kind.
  virtual bool Covers(const Target& device, const Target& code) const = 0;
  /// The most f32 operations a nanosecond, two of a multiply-add. Nominal and generous: a bound.
  virtual double MostFlopPerNs(const Target& target) const = 0;
  /// The most bytes a nanosecond that all threads read of what caches hold. Nominal and generous.
  virtual double MostBytesPerNs(const Target& target) const = 0;
  /// What the header of a package says that its code needs (docs/formats/package.md).
  virtual uint64_t PackageBits(const Target& target) const = 0;
};

/// The kinds that are known, the CPU first.
const std::vector<const TargetKind*>& TargetKinds();
/// Adds one, which must live as long as the program; before any thread asks. For tests and programs
/// that bring their own kind of device.
void RegisterTargetKind(const TargetKind* kind);

/// Parses `cpu:avx2|avx512[+vnni+bf16+amx],threads=N` (threads defaults to 1) or the text of
/// another kind. On error returns false and sets *error to a message that names the bad part and
/// lists what is accepted. `native` is refused here: resolve it with ResolveNative first.
bool ParseTarget(std::string_view text, Target* target, std::string* error);

/// Replaces `native` by the best that this host has and a missing threads= by `threads`, where the
/// kind has threads. A text of no kind stays as it is.
std::string ResolveNative(std::string_view text, int threads);

/// True when this host can run code made for the target; otherwise *why names both sides.
bool HostCanRun(const Target& target, std::string* why);

/// Whether a device whose best target is `device` is of the kind of `code` and has its
/// instructions.
bool Covers(const Target& device, const Target& code);

/// TargetKind::MostFlopPerNs and MostBytesPerNs of the target's kind.
double MostFlopPerNs(const Target& target);
double MostBytesPerNs(const Target& target);

/// TargetKind::PackageBits of the target's kind.
uint64_t PackageBits(const Target& target);

}  // namespace hone::ir
