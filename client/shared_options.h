#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "client/option_table.h"

// Options and positionals that several commands have, for option_table.cc alone.
namespace hone::client {

// ---- options of commands that load a model ----

inline constexpr OptionSpec kDim = {.name = "dim",
                                    .kind = ValueKind::kText,
                                    .argument = "NAME=N",
                                    .help = "Give a symbolic dimension of the model this size",
                                    .repeated = true,
                                    .meant = "dims|dimension|symbol"};
inline constexpr OptionSpec kShape = {.name = "shape",
                                      .kind = ValueKind::kText,
                                      .argument = "INPUT=1x3x224x224",
                                      .help = "Give an input of the model this shape",
                                      .repeated = true,
                                      .meant = "input-shape|shapes"};
inline constexpr OptionSpec kBind = {.name = "bind",
                                     .kind = ValueKind::kText,
                                     .argument = "INPUT=F.npy",
                                     .help = "Make an input of the model a constant",
                                     .repeated = true};
inline constexpr OptionSpec kCut = {.name = "cut",
                                    .kind = ValueKind::kText,
                                    .argument = "NAMES",
                                    .help =
                                        "Compile only what these values need (names inside the "
                                        "model, separated by commas); they become its outputs",
                                    .repeated = true};
inline constexpr OptionSpec kBatch = {
    .name = "batch",
    .kind = ValueKind::kChoice,
    .argument = "HOW",
    .help =
        "How a batch of independent images runs: together (each kernel computes all images), each "
        "(all kernels for one image, then the next: less memory, and tensors between kernels stay "
        "in the caches), or auto (the faster way by hone tune's measurement, else by the target's "
        "nominal caches)",
    .default_text = "auto",
    .choices = "auto|together|each"};
inline constexpr OptionSpec kBranches = {
    .name = "branches",
    .kind = ValueKind::kChoice,
    .argument = "HOW",
    .help =
        "How independent branches of the model run: turn (one after the other, each on all "
        "threads), "
        "beside (side by side, where each alone leaves threads idle), or auto (the faster way by "
        "hone tune's measurement, else in turn)",
    .default_text = "auto",
    .choices = "auto|turn|beside"};
inline constexpr OptionSpec kCascades = {
    .name = "cascades",
    .kind = ValueKind::kChoice,
    .argument = "HOW",
    .help =
        "Whether chains of layers become one kernel each, computed in bands of rows so that what "
        "lies between the layers stays in the caches (less memory; rows where bands meet are "
        "computed twice): off, on (where those tensors do not fit into the last cache), all (every "
        "chain that can be), or auto (on where hone tune measured that it wins, else off)",
    .default_text = "auto",
    .choices = "auto|off|on|all"};
inline constexpr OptionSpec kTarget = {
    .name = "target",
    .kind = ValueKind::kText,
    .argument = "TARGET",
    .help =
        "What to make code for: cpu:avx2, cpu:avx512 or cpu:native, "
        "then +vnni, +bf16, +amx and ,threads=N if wanted; or cuda:sm_80 (sm_86, sm_89, sm_90a, "
        "sm_100a)",
    .default_text = "cpu:native"};
inline constexpr OptionSpec kThreads = {
    .name = "threads",
    .kind = ValueKind::kInteger,
    .argument = "N",
    .help = "Threads that the model runs on",
    .default_words = "the usable cores; for a package, as many as it was made for",
    .low = 1,
    .high = 1024,
    .meant = "jobs|cores|cpus|num-threads"};
inline constexpr OptionSpec kTraces = {
    .name = "traces",
    .kind = ValueKind::kFile,
    .argument = "FOLDER",
    .help =
        "Use the schedule FOLDER/HASH.trace for the kernel with that "
        "workload hash, where there is one"};
inline constexpr OptionSpec kDb = {
    .name = "db",
    .kind = ValueKind::kFile,
    .argument = "LOG",
    .help = "The tuning log (or a snapshot) whose best schedules are used",
    .default_words = "$HONE_DB, else $XDG_DATA_HOME/hone/tune.db, where there is one",
    .meant = "log|database"};
inline constexpr OptionSpec kNoLog = {.name = "no-log",
                                      .help = "Use the default schedules, and read no tuning log"};
inline constexpr OptionSpec kSnapshot = {
    .name = "snapshot",
    .kind = ValueKind::kText,
    .argument = "FILE@sha256:DIGEST",
    .help = "Like --db, for a pinned snapshot; fails when the file has another digest"};
inline constexpr OptionSpec kAccuracy = {
    .name = "accuracy",
    .kind = ValueKind::kChoice,
    .argument = "CLASS",
    .help =
        "How far results may be from the default schedule's: strict (1e-5 of the largest value and "
        "1e-4 of the value, no Winograd F(4x4)) or default (1e-4, 1e-3); a record of a stricter "
        "class serves a laxer one",
    .default_text = "default",
    .choices = "strict|default|fast"};
inline constexpr OptionSpec kPrecision = {
    .name = "precision",
    .kind = ValueKind::kChoice,
    .argument = "TYPE",
    .help =
        "Type in which f32 matrix products and convolutions multiply: f32; bf16 (sums, norms and "
        "softmax stay f32; some processors are slower at it, compare with hone bench); or f16 "
        "(only large weights are stored in f16, arithmetic stays f32)",
    .default_text = "f32",
    .choices = "f32|bf16|f16",
    .meant = "dtype|fp16|half"};
inline constexpr OptionSpec kCacheMb = {
    .name = "cache-mb",
    .kind = ValueKind::kInteger,
    .argument = "N",
    .help =
        "Limit of the cache in $XDG_CACHE_HOME/hone (built kernels and values of the oracle) in "
        "megabytes; the least recently used entries are deleted first; 0: no cache",
    .default_text = "1024",
    .low = 0,
    .high = 1e6};
inline constexpr OptionSpec kServer = {
    .name = "server",
    .kind = ValueKind::kText,
    .argument = "ADDRESS",
    .help = "Address of the farm's honed: HOST or HOST:PORT (7421)",
    .of_server = true,
    .meant = "host|url|address|farm|connect"};
inline constexpr OptionSpec kTls = {
    .name = "tls",
    .kind = ValueKind::kFile,
    .argument = "FOLDER",
    .help = "Your ca.pem, cert.pem and key.pem (honed issue submit NAME)",
    .of_server = true,
    .meant = "cert|certs|credentials"};
inline constexpr OptionSpec kInsecureLoopback = {
    .name = "insecure-loopback",
    .help = "No encryption; only for a server on this machine",
    .of_server = true};
inline constexpr OptionSpec kRequire = {
    .name = "require",
    .kind = ValueKind::kChoice,
    .argument = "RUNG",
    .help = "Fail rather than answer from a lower rung of the look-up",
    .default_text = "default",
    .choices = "exact|nearest|default"};
inline constexpr OptionSpec kAllowPredicted = {
    .name = "allow-predicted",
    .help =
        "Where nothing was measured, use schedules that the analytic model predicts to be fast "
        "(hone tune --measure predicted)"};
inline constexpr OptionSpec kDeviceClass = {.name = "device-class",
                                            .kind = ValueKind::kText,
                                            .argument = "CLASS",
                                            .help = "Use the log's records of this device class",
                                            .default_words = "this machine's"};
inline constexpr OptionSpec kVerbose = {
    .name = "verbose", .letter = 'v', .help = "Print details too, not only a summary"};
inline constexpr PositionalSpec kModelOrPackage = {.name = "MODEL",
                                                   .help = "A model (.onnx) or a package (.hone)"};
inline constexpr std::array kModelOrPackagePositionals = {kModelOrPackage};
inline constexpr OptionSpec kInputs = {.name = "inputs",
                                       .kind = ValueKind::kFile,
                                       .argument = "X.npz",
                                       .help = "Values of the inputs, by name"};
inline constexpr OptionSpec kInputsOrDrawn = {
    .name = "inputs",
    .kind = ValueKind::kFile,
    .argument = "X.npz",
    .help = "Values of the inputs, by name",
    .default_words = "NAME.inputs.npz beside the model, else drawn from --seed"};
inline constexpr OptionSpec kInput = {.name = "input",
                                      .kind = ValueKind::kText,
                                      .argument = "NAME=F.npy",
                                      .help = "Value of one input; wins over --inputs",
                                      .repeated = true};
inline constexpr OptionSpec kOutputs = {.name = "outputs",
                                        .kind = ValueKind::kFile,
                                        .argument = "Y.npz",
                                        .help =
                                            "Where to write the outputs, by name, over what "
                                            "is there",
                                        .line_only = true};

// ---- several of them together ----

template <size_t... kSizes>
constexpr auto Joined(const std::array<OptionSpec, kSizes>&... parts) {
  std::array<OptionSpec, (kSizes + ...)> all;
  auto end = all.begin();
  ((end = std::copy(parts.begin(), parts.end(), end)), ...);
  return all;
}

/// What model, and which schedules are looked up for it.
inline constexpr std::array kModelOptions = {
    kDim, kShape, kBind, kCut, kBatch, kBranches, kCascades, kTraces, kDb, kNoLog, kSnapshot,
};
/// What may be taken of what is found.
inline constexpr std::array kLookUpOptions = {
    kRequire, kAccuracy, kPrecision, kDeviceClass, kCacheMb,
};
inline constexpr std::array kServerOptions = {kServer, kTls, kInsecureLoopback};

inline constexpr OptionSpec kLockFolder = {
    .name = "lock-folder",
    .kind = ValueKind::kFile,
    .argument = "FOLDER",
    .help = "Folder for the locks of GPUs in use, and for notes about GPUs that do not work",
    .default_text = "/run/lock"};

}  // namespace hone::client
