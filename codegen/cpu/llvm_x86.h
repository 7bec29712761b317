#pragma once

#include "codegen/llvm_phase_function.h"

namespace hone::codegen {

/// A phase is `int32_t phase(const HoneCall*)`: two LLVM functions, the phase symbol of the ABI,
/// which loads the buffer pointers, and an inner one with noalias parameters that holds the code.
const Backend& X86Backend();

}  // namespace hone::codegen
