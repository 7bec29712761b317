#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/versions.h"
#include "ir/dtype.h"
#include "ir/kind_name.h"
#include "ir/per_kind.h"
#include "ir/target.h"

namespace hone::ir {

/// What searches, logs and farms ask of a kind of device, and the runtime does not. Thread-safe.
class KindFacts {
 public:
  virtual ~KindFacts() = default;

  virtual KindVersions versions() const = 0;
  /// What `hone explain --emit` calls the text of its code beside `code`; empty: nothing.
  virtual std::string_view assembly() const { return {}; }
  /// The target's text without the extensions that code is no better with; `has` tells which dtypes
  /// its Workloads have.
  virtual std::string NarrowedText(const Target& target,
                                   const std::function<bool(DType)>& /*has*/) const {
    return target.text;
  }
  /// Whether products of two factors of `dtype` have instructions of their own on the target; where
  /// they have none, factors are widened first.
  virtual bool Multiplies(const Target& /*target*/, DType /*dtype*/) const { return true; }
};

/// The kinds that have some. ir::PerKind says how to add one.
PerKind<KindFacts>& FactsOfKinds();

/// KindFacts::versions of the kind of a target or a device; the CPU's where it is unknown.
KindVersions VersionsOf(std::string_view text);

/// KindFacts::assembly of the target's kind.
std::string_view AssemblyOf(const Target& target);

/// KindFacts::Multiplies of the target's kind; true where it is unknown.
bool Multiplies(const Target& target, DType dtype);

/// KindFacts::NarrowedText of the target's kind, parsed.
Target Narrowed(const Target& target, const std::function<bool(DType)>& has);

/// Whether two targets differ in nothing but extensions (`+vnni`). Texts that are no targets are
/// the same when they are equal.
bool SameButExtensions(std::string_view target, std::string_view other);

}  // namespace hone::ir
