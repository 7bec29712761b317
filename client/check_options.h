#pragma once

#include <array>

#include "client/shared_options.h"

// Options and positionals of `hone check`, for option_table.cc alone.
namespace hone::client {

inline constexpr std::array kCheckOptions = {
    OptionSpec{.name = "points",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "Elements of each output to compare",
               .default_text = "32",
               .low = 1,
               .high = 1e6},
    OptionSpec{.name = "every-step",
               .help = "Check a kernel at each place where it occurs, not only at the first"},
    OptionSpec{.name = "inputs",
               .kind = ValueKind::kFile,
               .argument = "X.npz",
               .help = "Values of the inputs, by name",
               .default_words = "NAME.inputs.npz beside the model, else drawn from --seed"},
    kInput,
    OptionSpec{.name = "seed",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "Seed of the compared elements and of inputs that are not given",
               .default_text = "0",
               .low = 0},
    kTarget,
    kThreads,
    kDim,
    kShape,
    kBind,
    kCut,
    kBatch,
    kBranches,
    kCascades,
    kTraces,
    kDb,
    kNoLog,
    kSnapshot,
    kRequire,
    kAccuracy,
    kPrecision,
    kDeviceClass,
    kCacheMb,
};

}  // namespace hone::client
