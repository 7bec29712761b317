#pragma once

#include <array>

#include "client/shared_options.h"

// Options and positionals of `hone check`, for option_table.cc alone.
namespace hone::client {

inline constexpr std::array kCheckOwn = {
    OptionSpec{.name = "points",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "Elements of each output to compare",
               .default_text = "32",
               .low = 1,
               .high = 1e6},
    OptionSpec{.name = "every-step",
               .help = "Check a kernel at each place where it occurs, not only at the first"},
    kInputsOrDrawn,
    kInput,
    OptionSpec{.name = "seed",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "Seed of the compared elements and of inputs that are not given",
               .default_text = "0",
               .low = 0},
    kTarget,
    kThreads,
};
inline constexpr auto kCheckOptions = Joined(kCheckOwn, kModelOptions, kLookUpOptions);

}  // namespace hone::client
