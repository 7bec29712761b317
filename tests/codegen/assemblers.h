#pragma once

#include <memory>
#include <vector>

#include "base/core/clock.h"
#include "codegen/cuda/assemble.h"

namespace hone::codegen {

/// The assemblers that this machine has: the one that is built in, `ptxas` in the PATH. `clock`
/// must live on.
std::vector<std::unique_ptr<Assembler>> AssemblersHere(const MonotonicClock& clock);

/// Why a test that assembles is skipped where there are none.
inline constexpr char kNoAssembler[] = "built without nvPTXCompiler, and no ptxas in the PATH";

}  // namespace hone::codegen
