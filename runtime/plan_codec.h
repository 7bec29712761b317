#pragma once

#include "base/core/byte_stream.h"
#include "ir/plan.h"

namespace hone::runtime {

/// Appends the plan's table (docs/formats/package.md); prologue texts are left out.
void EncodePlan(const ir::Plan& plan, ByteWriter& writer);

/// Reads it back, as a package of this format has it. Failures stick to the reader; the plan is
/// then incomplete and must not be used. Only the form is checked here: CheckPlan checks the
/// meaning.
ir::Plan DecodePlan(ByteReader& reader, int format);

}  // namespace hone::runtime
