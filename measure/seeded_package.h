#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/core/result.h"
#include "runtime/executable.h"
#include "runtime/package.h"
#include "runtime/region.h"

// Packages without their constants, for who measures a model and shall not learn its weights: plan
// and code are as they were, the constants are made up where it runs. None of this is thread-safe.
namespace hone::measure {

/// The bytes of a package up to its constants, and how many of these there are. kInvalidArgument
/// where SerializePackage refuses it.
Result<std::string> CutConstants(const runtime::Package& package);

/// A package with constants from a seed. Floats lie in [-0.1, 0.1): large enough that nothing
/// becomes denormal over many layers, small enough that little overflows. Integers of 32 and 64
/// bits, which may be indices, are 0; bytes take their whole range.
struct SeededPackage {
  runtime::Region memory;  ///< of the executable, which uses it in place
  std::shared_ptr<const runtime::Executable> executable;

  /// `cut`: what CutConstants gave. Errors: kDataLoss where it is not that, else those of
  /// Executable::OpenMemory.
  static Result<SeededPackage> Make(std::string_view cut, uint64_t seed);
};

}  // namespace hone::measure
