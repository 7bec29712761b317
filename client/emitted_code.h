#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "ir/target.h"
#include "ir/workload.h"
#include "measure/builder_client.h"

namespace hone::client {

/// What a Trace becomes (an empty text: the default schedule): `form` is "nest", the loop nest, or
/// "code", the assembly text that the target's code is made of: PTX for a GPU. Errors: the Trace is
/// refused, the builder's.
absl::StatusOr<std::string> EmittedCode(const std::string& form, const ir::Workload& workload,
                                        const std::string& trace, const ir::Target& target,
                                        measure::BuilderClient& builder);

}  // namespace hone::client
