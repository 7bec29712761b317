#pragma once

#include "compiler/model_steps.h"

namespace hone::compiler {

/// Makes Concats without copying: an operand that one kernel writes whole, and that no step needs
/// in one piece, gets its place inside the result, and its writer and readers address it there
/// through their Bindings. Other operands are copied to their place one by one; a Concat without
/// any operand of the first kind stays the kernel it was. Where the operands of one Concat are the
/// first ones of another (dense blocks), the smaller becomes a part of the larger. Renumbers the
/// kernels by first use: steps of one Workload with different Bindings run different kernels.
void PlaceConcats(ModelSteps& model);

}  // namespace hone::compiler
