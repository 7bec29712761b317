#pragma once

#include <array>

#include "client/shared_options.h"

// Options and positionals of `hone bench`, for option_table.cc alone.
namespace hone::client {

inline constexpr std::array kBenchPositionals = {
    PositionalSpec{.name = "MODEL",
                   .help = "A model (.onnx) or a package (.hone); several are run in turns",
                   .repeated = true},
};
inline constexpr std::array kBenchOwn = {
    OptionSpec{.name = "seconds",
               .kind = ValueKind::kDuration,
               .argument = "TIME",
               .help = "How long to measure, after a tenth of it to warm up: seconds, or 1m, 2h",
               .default_text = "2",
               .low = 0,
               .high = 86400,
               .meant = "secs|time|duration|iterations|repeat|runs"},
    OptionSpec{.name = "against",
               .kind = ValueKind::kChoice,
               .argument = "RUNTIME",
               .help = "Also run the first .onnx there, in turns: the python3 that PATH finds must "
                       "be able to import it",
               .choices = "onnxruntime",
               .meant = "vs|versus|compare|baseline"},
    OptionSpec{.name = "percentiles", .help = "Print p50, p90, p99 and p99.9 of a run"},
    OptionSpec{.name = "load",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "Also run N processes that each keep a CPU busy",
               .default_text = "0",
               .low = 0,
               .high = 1024},
    kThreads,
    OptionSpec{.name = "profile",
               .help = "Also print the time of each kernel, with FLOP, bytes and share of what the "
                       "machine can do"},
    kInputsOrDrawn,
    kInput,
    kOutputs,
    OptionSpec{.name = "seed",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "Seed of inputs that are not given",
               .default_text = "0",
               .low = 0},
    OptionSpec{.name = "unpinned", .help = "Let the system choose the CPUs of threads"},
    kTarget,
};
inline constexpr auto kBenchOptions = Joined(kBenchOwn, kModelOptions, kLookUpOptions);

}  // namespace hone::client
