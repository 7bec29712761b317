#pragma once

#include "codegen/llvm_phase_function.h"

namespace hone::codegen {

/// Targets of the family "cuda:sm_80", "cuda:sm_90a" and so on; assembly text is PTX. A phase is a
/// kernel with the parameters
///     pointer of each buffer of HoneCall.buffers, in its order
///     int64_t step
///     int32_t* result: stays as it is, or becomes what the phase would return (kFail)
/// to be launched as ir::LaunchOf(nest, phase) says: loops bound to blocks and threads are not run
/// but launched, and so is a parallel loop. Scratch is memory of each thread's own. Shared memory
/// is declared in the code or, where it is more than code may declare, what the launch gives. A
/// launch with descriptors, which nothing emits yet, has a tensor map of 128 bytes for each after
/// them.
const Backend& NvptxBackend();

}  // namespace hone::codegen
