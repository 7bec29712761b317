#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "schedule/trace.h"

// What a Trace says of a loop or a Stage: for rules that read their values back.
namespace hone::schedule {

/// The first instruction of this primitive whose first argument this is (any, where it is empty);
/// null when there is none.
const Instruction* FindInstruction(const Trace& trace, std::string_view primitive,
                                   std::string_view first = {});
/// The factors by which a loop is split, outer to inner; empty when it is whole.
std::vector<int64_t> FactorsOf(const Trace& trace, std::string_view loop);
/// The loops of a Stage as its first reorder puts them; empty when they stay.
std::vector<std::string> OrderOf(const Trace& trace, std::string_view stage);

/// How many partial results an rfactor makes; `otherwise` where it is null or does not say.
int64_t PartialsIn(const Instruction* rfactor, int64_t otherwise);

}  // namespace hone::schedule
