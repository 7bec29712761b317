#pragma once

#include "measure/kind_runner.h"

namespace hone::abacus {

/// Runs candidates in a runner's process. Number 9 is lost once it has run something.
const measure::KindRunner& Runner();

/// Makes runners and those who start them know it, once a process.
void RegisterRunner();

}  // namespace hone::abacus
