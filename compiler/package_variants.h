#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"

#include "compiler/compile_model.h"
#include "runtime/package.h"

namespace hone::compiler {

/// Packages of one model for several targets with the constants of all: what several need is there
/// once. Movable (the spans stay valid).
struct PackageVariants {
  std::vector<std::byte> constants;
  runtime::Variants packages;  ///< code is the models'

  PackageVariants() = default;
  PackageVariants(PackageVariants&&) = default;
  PackageVariants& operator=(PackageVariants&&) = default;
};

/// Puts the constants of compiled models into one table and makes their plans read from there.
/// Pieces are equal when their bytes are (found by hash). What only one model needs stands beside
/// what it shares, so that of two each reads one stretch. The models must outlive the result. One
/// model keeps its constants as they are. kResourceExhausted.
absl::StatusOr<PackageVariants> ShareConstants(const std::vector<CompiledModel>& models);

}  // namespace hone::compiler
