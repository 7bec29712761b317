#pragma once

#include <array>

#include "client/farm_options.h"
#include "client/shared_options.h"

// Options and positionals of `hone query`, `explain` and `report`, for option_table.cc alone.
namespace hone::client {

inline constexpr std::array kExplainPositionals = {
    PositionalSpec{.name = "MODEL|TASK",
                   .help = "A model (.onnx), or the first digits of a task's workload hash"},
};
inline constexpr OptionSpec kReadLog = {
    .name = "db",
    .kind = ValueKind::kFile,
    .argument = "LOG",
    .help = "The tuning log (or a snapshot) to read",
    .default_words = "$HONE_DB, else $XDG_DATA_HOME/hone/tune.db"};
inline constexpr std::array kQueryOptions = {
    kReadLog,        kSnapshot,  kServer,      kTls,     kInsecureLoopback,
    kTarget,         kThreads,   kDeviceClass, kDim,     kShape,
    kBind,           kCut,       kBatch,       kCacheMb, kAccuracy,
    kAllowPredicted, kPrecision, kCascades,
};

inline constexpr std::array kExplainOptions = {
    kReadLog,
    OptionSpec{.name = "top",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "How many of the best Traces to show of each task",
               .default_text = "3",
               .low = 1,
               .high = 1000},
    OptionSpec{.name = "emit",
               .kind = ValueKind::kChoice,
               .argument = "FORM",
               .help = "Print the loop nest or the code of each task's best Trace, or of the "
                       "default schedule where none is known; ptx is code for a GPU",
               .choices = "nest|code|ptx"},
    kTarget,
    kThreads,
    kDeviceClass,
    kAccuracy,
    kPrecision,
    kDim,
    kShape,
    kBind,
    kCut,
    kBatch,
    kCascades,
    kCacheMb,
};

inline constexpr OptionSpec kRecheckTop = {
    .name = "top",
    .kind = ValueKind::kInteger,
    .argument = "N",
    .help = "recheck: how many of the best Traces of each kernel to measure",
    .default_text = "3",
    .low = 1,
    .high = 60};
inline constexpr OptionSpec kRecheckAll = {
    .name = "all",
    .help =
        "recheck: also kernels that were measured on the device as it is now (a CPU's kernel "
        "or microcode is not noticed)"};

inline constexpr std::array kReportOptions = {
    kReadLog,
    OptionSpec{.name = "session",
               .kind = ValueKind::kText,
               .argument = "ID",
               .help = "The session's id, or its first digits",
               .default_words = "the last one that measured something"},
    OptionSpec{.name = "output",
               .letter = 'o',
               .kind = ValueKind::kFile,
               .argument = "REPORT.html",
               .help = "Where to write the page, over what is there",
               .default_words = "report.html",
               .line_only = true},
};

}  // namespace hone::client
