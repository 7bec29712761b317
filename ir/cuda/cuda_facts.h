#pragma once

#include "ir/kind_facts.h"

namespace hone::ir {

const KindFacts& CudaFacts();

}  // namespace hone::ir
