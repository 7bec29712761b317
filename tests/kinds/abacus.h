#pragma once

#include <string>
#include <string_view>

#include "ir/target.h"

// A kind of device that no machine has: what stands here is all that a new kind brings.
namespace hone::abacus {

struct AbacusTarget : ir::TargetDetails {
  int rods = 1;
};

/// Makes `abacus:rods=N` known on every floor, once a process.
void Register();

/// The target of that text, registered.
ir::Target TargetOf(const char* text);

/// Whoever else uses every abacus from now on: so many of them; 0: nobody.
void SetOthers(double others);

}  // namespace hone::abacus
