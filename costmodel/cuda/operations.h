#pragma once

#include "ir/expr.h"

namespace hone::costmodel {

/// Arithmetic of a body in f32 operations: what a GPU needs many instructions for counts as many.
/// Indices are free.
double Operations(const ir::Expr& e);

}  // namespace hone::costmodel
