#pragma once

#include "client/shared_options.h"

// Options of commands that change layers of a model and say what that costs (quantize, prune), for
// option_table.cc alone.
namespace hone::client {

inline constexpr OptionSpec kCalibrate = {
    .name = "calibrate",
    .kind = ValueKind::kFile,
    .argument = "X.npz",
    .help =
        "Typical inputs: arrays by input name, of one run or of several concatenated along the "
        "first axis; or a folder of such files",
    .default_words = "random inputs, which only show how near the result is",
    .repeated = true,
    .meant = "calibration|data|inputs|dataset"};
inline constexpr OptionSpec kKeepLayer = {.name = "keep",
                                          .kind = ValueKind::kText,
                                          .argument = "NODE",
                                          .help = "Leave this MatMul, Gemm or Conv as it is",
                                          .repeated = true,
                                          .meant = "exclude|skip|nodes-to-exclude"};
inline constexpr OptionSpec kTargetSqnr = {
    .name = "target-sqnr",
    .kind = ValueKind::kNumber,
    .argument = "DB",
    .help =
        "Leave layers as they are, those with the most noise first, until the outputs have this "
        "signal-to-noise ratio",
    .low = 0,
    .high = 150};
inline constexpr OptionSpec kMaxDrop = {
    .name = "max-drop",
    .kind = ValueKind::kNumber,
    .argument = "P",
    .help =
        "Leave layers as they are, those with the most noise first, until top-1 accuracy drops by "
        "at most P percentage points; needs --labels",
    .low = 0,
    .high = 100};
inline constexpr OptionSpec kLabels = {
    .name = "labels",
    .kind = ValueKind::kFile,
    .argument = "L.npz",
    .help =
        "Right answers: an array `labels` with the class of each row of the first output, and "
        "arrays of the inputs that they belong to; without inputs, those of --calibrate"};
inline constexpr OptionSpec kFrontReport = {
    .name = "report",
    .kind = ValueKind::kFile,
    .argument = "FILE.html",
    .help =
        "Also time models with more and fewer layers left as they are, and write a page that plots "
        "accuracy against time",
    .line_only = true};
inline constexpr OptionSpec kFrontSeconds = {.name = "seconds",
                                             .kind = ValueKind::kDuration,
                                             .argument = "TIME",
                                             .help = "How long to time each of these models",
                                             .default_text = "1",
                                             .low = 0.01,
                                             .high = 3600};

}  // namespace hone::client
