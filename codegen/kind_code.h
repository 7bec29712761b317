#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "ir/artifact.h"
#include "ir/per_kind.h"
#include "ir/stmt.h"
#include "ir/target.h"

namespace hone::codegen {

/// Machine code of a kind of device. Errors and thread safety as in codegen.h.
class KindCode {
 public:
  virtual ~KindCode() = default;

  /// One piece of code with every phase of every nest.
  virtual absl::StatusOr<std::string> Compile(const std::vector<const ir::LoopNest*>& nests,
                                              const ir::Target& target) const = 0;
  /// How a phase of what Compile made is launched.
  virtual ir::Launch LaunchOf(const ir::LoopNest& nest, const ir::Phase& phase) const;
  /// What runtime::Device loads, of pieces that Compile made; `bases` as of LinkShared.
  virtual absl::StatusOr<std::string> Link(const std::vector<std::string>& pieces,
                                           const std::vector<std::string>& bases) const = 0;
};

/// The kinds that code can be made for. ir::PerKind says how to add one.
ir::PerKind<KindCode>& CodeOfKinds();

}  // namespace hone::codegen
