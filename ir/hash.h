#pragma once

#include "base/core/hash128.h"
#include "ir/workload.h"

namespace hone::ir {

/// The identity of a Workload: a hash of its canonical text (ir/text.h), so that it does not depend
/// on the order in which Stages and tensors were made, on their names, or on values of constants.
/// Equal on every platform; part of the log's key, so the text form may not change without a new
/// version of it.
Hash128 StructuralHash(const Workload& workload);

}  // namespace hone::ir
