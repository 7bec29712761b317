#pragma once

#include <array>

#include "client/rewrite_options.h"

// Options and positionals of `hone quantize`, for option_table.cc alone.
namespace hone::client {

inline constexpr std::array kQuantisePositionals = {
    PositionalSpec{.name = "MODEL", .help = "A model (.onnx) in f32"},
};
inline constexpr std::array kQuantiseOptions = {
    kCalibrate,
    OptionSpec{.name = "scheme",
               .kind = ValueKind::kChoice,
               .argument = "SCHEME",
               .help = "int8 (data by calibrated ranges, weights by columns), int8-dynamic (data "
                       "by the range of each run), int8-weights, int4-weights (in groups), bf16 "
                       "(data and weights), f16 (weights)",
               .default_text = "int8",
               .choices = "int8|int8-dynamic|int8-weights|int4-weights|bf16|f16",
               .meant = "type|dtype|precision|mode"},
    OptionSpec{.name = "method",
               .kind = ValueKind::kChoice,
               .argument = "METHOD",
               .help = "How the range of a value follows from the calibration data: all of them "
                       "(minmax), all but the outermost (percentile), least squared error (mse), "
                       "least relative entropy (entropy)",
               .default_text = "minmax",
               .choices = "minmax|percentile|mse|entropy"},
    OptionSpec{.name = "percentile",
               .kind = ValueKind::kNumber,
               .argument = "P",
               .help = "Percentile that --method percentile keeps at each end",
               .default_text = "99.99",
               .low = 90,
               .high = 100},
    OptionSpec{.name = "group",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "How many weights along a sum share a scale with --scheme int4-weights: a "
                       "power of two that divides the sums of every layer that is not kept",
               .default_words = "32; layers that it does not divide stay in f32",
               .low = 16,
               .high = 1024},
    kKeepLayer,
    kTargetSqnr,
    kMaxDrop,
    kLabels,
    kFrontReport,
    kFrontSeconds,
    OptionSpec{.name = "output",
               .letter = 'o',
               .kind = ValueKind::kFile,
               .argument = "FILE",
               .help = "Where to write the model, over what is there",
               .default_words = "NAME.SCHEME.onnx beside the model",
               .line_only = true},
    kTarget,
    kThreads,
    kDim,
    kShape,
    kBind,
    kDb,
    kNoLog,
    kCacheMb,
};

inline constexpr CommandSpec kQuantiseCommand = {
    .name = "quantize",
    .summary = "Write a model in int8, int4, bf16 or f16, and say what that costs",
    .description =
        "Runs the model on calibration data and writes a standard ONNX file whose matrix products "
        "and convolutions multiply narrow numbers; Hone, ONNX Runtime and others read it. It says "
        "for each layer the range of its data, how exact the model is with this layer alone "
        "narrowed, and its share of the noise; and how exact the written model is as compiled.\n\n"
        "With --target-sqnr or --max-drop it leaves in f32 as few layers as meet the target, most "
        "noise first, says what each costs by the tuning log, and times whole models with more and "
        "fewer layers in f32 in turns (also with --report): times of layers do not add up.\n\n"
        "Biases are corrected where that makes the model more exact; int8 divides channels of "
        "outliers out of the data into the weights where that makes sums more exact "
        "(SmoothQuant).",
    .positionals = kQuantisePositionals,
    .options = kQuantiseOptions,
    .example = "hone quantize model.onnx --calibrate data.npz -o model.int8.onnx",
    .meant = "quantise|quantization|int8|compress"};

}  // namespace hone::client
