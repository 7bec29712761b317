#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/stmt.h"
#include "ir/target.h"
#include "tests/schedule/nest_check.h"

namespace hone::ptx {

/// The target of a chip: "sm_80", "sm_90a". The test fails where there is none.
ir::Target CudaTarget(const std::string& chip);

/// Emits a loop nest as PTX for a chip and executes that text: all steps of the nest, one launch a
/// phase, on the bytes of HoneCall.buffers. Buffers that the nest writes hold nothing at the start.
/// kInvalidArgument: the code generator refused; kInternal: the executor did (machine.h), or a
/// phase ended with a result other than 0.
absl::Status RunPtx(const ir::LoopNest& nest, const std::string& chip, uint64_t seed,
                    std::vector<std::vector<uint8_t>>* buffers);

/// Checks with inputs and threads of `seed`, which also run what is emitted for the chip.
schedule::CheckOptions OnGpu(const std::string& chip, uint64_t seed);

}  // namespace hone::ptx
