#pragma once

#include <array>

#include "client/rewrite_options.h"

// Options and positionals of `hone prune`, for option_table.cc alone.
namespace hone::client {

inline constexpr std::array kPrunePositionals = {
    PositionalSpec{.name = "MODEL", .help = "A model (.onnx) with weights of f32"},
};
inline constexpr std::array kPruneOptions = {
    OptionSpec{.name = "sparsity",
               .kind = ValueKind::kNumber,
               .argument = "S",
               .help =
                   "The share of each layer's weights (blocks, channels, heads) that becomes zero, "
                   "from 0 to below 1; --structure 2:4 has its own",
               .meant = "ratio|amount|share|density"},
    OptionSpec{.name = "structure",
               .kind = ValueKind::kText,
               .argument = "WHAT",
               .help = "What becomes zero together: none (each weight by itself), channel (input "
                       "channels of convolutions and products, which are removed with what "
                       "computes them), head (of attentions, with its queries, keys and values), "
                       "block:MxN (M neighbouring terms of a sum by N neighbouring "
                       "columns), N:M (all but N of M neighbouring input channels, as 2:4)",
               .default_text = "none",
               .meant = "pattern|granularity|block|type"},
    kCalibrate,
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
               .default_words = "NAME.pruned.onnx beside the model",
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

inline constexpr CommandSpec kPruneCommand = {
    .name = "prune",
    .summary = "Write a model with fewer weights, and say what that costs",
    .description =
        "Makes the least salient weights of matrix products and convolutions zero and writes a "
        "standard ONNX file, which Hone, ONNX Runtime and others read. Without --calibrate a "
        "weight's saliency is its size; with it, its size times what the data were seen to carry "
        "through it (Wanda), and biases make up for what the zeros take from the means, where that "
        "makes the model more exact. It says for each layer the share of zeros, how exact the "
        "model is with this layer alone pruned, and its share of the noise; and how exact the "
        "written model is as compiled.\n\n"
        "Zeros alone make no engine faster; --structure channel takes channels out of the model, "
        "which makes it smaller and faster for all.\n\n"
        "With --target-sqnr or --max-drop it leaves as they are as few layers as meet the target, "
        "most noise first, says what each costs by the tuning log, and times whole models with "
        "more and fewer layers pruned in turns (also with --report).",
    .positionals = kPrunePositionals,
    .options = kPruneOptions,
    .example = "hone prune model.onnx --sparsity 0.5 --calibrate data.npz -o model.pruned.onnx",
    .meant = "sparsify|sparse|slim"};

}  // namespace hone::client
