#pragma once

#include <array>

#include "client/shared_options.h"

// The options of `hone tune`, for option_table.cc alone.
namespace hone::client {

inline constexpr std::array kTuneOptions = {
    OptionSpec{.name = "db",
               .kind = ValueKind::kFile,
               .argument = "LOG",
               .help = "The tuning log to write",
               .default_words = "$HONE_DB, else $XDG_DATA_HOME/hone/tune.db"},
    kServer,
    kTls,
    kInsecureLoopback,
    OptionSpec{.name = "journal",
               .kind = ValueKind::kFile,
               .argument = "FILE",
               .help = "--server: append everything that it acknowledges to this file"},
    OptionSpec{.name = "seconds",
               .kind = ValueKind::kNumber,
               .argument = "S",
               .help = "Stop after so many seconds",
               .default_words = "600, unless another limit is given",
               .low = 0.001,
               .high = 31536000},
    OptionSpec{.name = "minutes",
               .kind = ValueKind::kNumber,
               .argument = "M",
               .help = "Stop after so many minutes",
               .low = 0.001,
               .high = 525600},
    OptionSpec{.name = "until",
               .kind = ValueKind::kText,
               .argument = "TIME",
               .help = "Stop at a local time: 18:30, or 2030-01-31T18:30"},
    OptionSpec{.name = "trials",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "Stop after so many candidates",
               .low = 1},
    OptionSpec{.name = "seed",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "Seed of the search and of the measured inputs",
               .default_text = "0",
               .low = 0},
    OptionSpec{.name = "dry-run", .help = "Print tasks, budget and expected end, and stop"},
    OptionSpec{.name = "inputs",
               .kind = ValueKind::kFile,
               .argument = "X.npz",
               .help = "Values of the inputs for the comparison of whole models, by name",
               .default_words = "NAME.inputs.npz beside the model, else drawn from --seed"},
    kInput,
    kAccuracy,
    kTarget,
    kThreads,
    kDim,
    kShape,
    kBind,
    kCacheMb,
};

}  // namespace hone::client
