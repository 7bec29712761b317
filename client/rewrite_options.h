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
        "Data that the model meets: arrays of the inputs by name, of one run or several "
        "behind each other; or a folder of such files",
    .default_words = "drawn inputs, which only say how near the result is",
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
        "Leave as few layers as they are as give this signal-to-noise ratio of the "
        "outputs, most noise first",
    .low = 0,
    .high = 150};
inline constexpr OptionSpec kMaxDrop = {
    .name = "max-drop",
    .kind = ValueKind::kNumber,
    .argument = "P",
    .help =
        "The same for the share of right answers, which drops by at most so many "
        "points of a hundred; needs --labels",
    .low = 0,
    .high = 100};
inline constexpr OptionSpec kLabels = {
    .name = "labels",
    .kind = ValueKind::kFile,
    .argument = "L.npz",
    .help =
        "Right answers: an array `labels` with the class of each row of the first "
        "output, beside data that they belong to; without data, those of "
        "--calibrate"};
inline constexpr OptionSpec kFrontReport = {
    .name = "report",
    .kind = ValueKind::kFile,
    .argument = "FILE.html",
    .help =
        "Also time models with more and fewer layers left as they are, and write a "
        "page with the front of accuracy against time",
    .line_only = true};
inline constexpr OptionSpec kFrontSeconds = {.name = "seconds",
                                             .kind = ValueKind::kDuration,
                                             .argument = "TIME",
                                             .help = "How long to time each model of the front",
                                             .default_text = "1",
                                             .low = 0.01,
                                             .high = 3600};

}  // namespace hone::client
