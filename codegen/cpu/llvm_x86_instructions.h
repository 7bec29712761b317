#pragma once

#include "codegen/llvm_instructions.h"

namespace hone::codegen {

/// Those of AVX-512, with AVX512_BF16 or without; for AVX2 there are none.
const Instructions& X86Instructions(bool avx512, bool bf16);

}  // namespace hone::codegen
