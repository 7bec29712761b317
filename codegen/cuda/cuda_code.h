#pragma once

#include "codegen/kind_code.h"

namespace hone::codegen {

/// A piece is PTX, assembled to a cubin where Hone was built with an assembler; linked, they are
/// ir::PackCudaModules.
const KindCode& CudaCode();

}  // namespace hone::codegen
