#include "client/option_table.h"

#include <array>

#include "client/bench_options.h"
#include "client/check_options.h"
#include "client/farm_options.h"
#include "client/log_options.h"
#include "client/prune_options.h"
#include "client/quantise_options.h"
#include "client/shared_options.h"
#include "client/tune_options.h"

namespace hone::client {
namespace {

// ---- options that several commands share ----

constexpr OptionSpec kHelp = {.name = "help", .letter = 'h', .help = "Print this help and exit"};
constexpr OptionSpec kJson = {
    .name = "json",
    .help = "Print one JSON object and nothing else, also for an error; --help stays text"};
constexpr OptionSpec kQuiet = {.name = "quiet",
                               .letter = 'q',
                               .help =
                                   "Print neither progress nor warnings; results and errors "
                                   "are printed"};
constexpr std::array kCommonOptions = {kHelp, kQuiet, kJson};

// ---- one table a command ----

constexpr std::array kRunOwn = {
    kInputs,
    kInput,
    kOutputs,
    OptionSpec{.name = "expect",
               .kind = ValueKind::kFile,
               .argument = "E.npz",
               .help = "Compare the outputs with these; ends with 10 when they differ"},
    OptionSpec{.name = "absolute",
               .kind = ValueKind::kNumber,
               .argument = "A",
               .help = "Absolute tolerance A: an output may differ from the expected e by A * "
                       "max|e| + R * |e|",
               .default_words = "f32 and f64 1e-4, f16 2e-3, bf16 0.016",
               .low = 0},
    OptionSpec{.name = "relative",
               .kind = ValueKind::kNumber,
               .argument = "R",
               .help = "Relative tolerance R, see --absolute",
               .default_words = "f32 and f64 1e-3, f16 4e-3, bf16 0.031",
               .low = 0},
    kThreads,
    kTarget,
};
constexpr auto kRunOptions = Joined(kRunOwn, kModelOptions, kLookUpOptions);

constexpr std::array kZooPositionals = {
    PositionalSpec{.name = "NAME",
                   .kind = ValueKind::kChoice,
                   .help = "Which network to write; list names them all",
                   .choices = "list|resnet18|resnet50|mobilenet_v2|squeezenet|bert_small|bert_base|"
                              "gpt2_small|vit_small|lstm|mlp|unet"},
};
constexpr std::array kZooOptions = {
    OptionSpec{.name = "output",
               .letter = 'o',
               .kind = ValueKind::kFile,
               .argument = "FILE",
               .help = "Where to write, over what is there; weights above 100 MB go to "
                       "FILE.data beside it",
               .default_words = "NAME.onnx",
               .line_only = true},
    OptionSpec{.name = "seed",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "Seed of the weights",
               .default_text = "0",
               .low = 0},
};

constexpr std::array kCompileOwn = {
    kVerbose,
    OptionSpec{.name = "also",
               .kind = ValueKind::kText,
               .argument = "TARGET",
               .help = "Also put code for this target into the package; the runtime takes the best "
                       "that its machine can run",
               .repeated = true},
    OptionSpec{.name = "emit",
               .kind = ValueKind::kText,
               .argument = "LIST",
               .help = "Also write, beside the package: so (a shared library with the runtime "
                       "inside, and the object it is made of), object, header (for C)"},
    OptionSpec{.name = "output",
               .letter = 'o',
               .kind = ValueKind::kFile,
               .argument = "FILE",
               .help = "Where to write the package, over what is there",
               .default_words = "NAME.hone beside the model",
               .line_only = true},
    OptionSpec{.name = "depfile",
               .kind = ValueKind::kFile,
               .argument = "FILE",
               .help = "Also write FILE, a rule for Make and Ninja that names the files that the "
                       "package was made from, the log included",
               .line_only = true},
    kTarget,
    kThreads,
};
constexpr std::array kCompileLookUp = {kRequire,   kAccuracy,    kAllowPredicted,
                                       kPrecision, kDeviceClass, kCacheMb};
constexpr auto kCompileOptions = Joined(kCompileOwn, kModelOptions, kServerOptions, kCompileLookUp);

constexpr std::array kInspectOwn = {
    kVerbose,
    OptionSpec{
        .name = "kernel",
        .kind = ValueKind::kText,
        .argument = "HASH",
        .help = "Print workload and trace of the kernels whose workload hash starts with HASH"},
    kTarget,
    kThreads,
};
constexpr auto kInspectOptions = Joined(kInspectOwn, kModelOptions, kLookUpOptions);

constexpr std::array kModelPositionals = {
    PositionalSpec{.name = "MODEL", .help = "A model (.onnx)"},
};

constexpr std::array kCachePositionals = {
    PositionalSpec{.name = "ACTION",
                   .kind = ValueKind::kChoice,
                   .help = "What to do",
                   .choices = "info|clear"},
};
constexpr std::array kCacheOptions = {kCacheMb};

constexpr std::array kDbPositionals = {
    PositionalSpec{.name = "ACTION",
                   .kind = ValueKind::kChoice,
                   .help = "What to do",
                   .choices = "stats|best|export|merge|snapshot|verify|compact|audit|recheck"},
    PositionalSpec{.name = "LOG",
                   .help = "A tuning log, or a snapshot of one; default: that of --db",
                   .required = false},
    PositionalSpec{.name = "FROM", .help = "merge: the log to add to LOG", .required = false},
};
constexpr std::array kDbOptions = {
    kReadLog,
    OptionSpec{.name = "output",
               .letter = 'o',
               .kind = ValueKind::kFile,
               .argument = "FILE|FORM",
               .help = "export, snapshot: where to write; an export over what is there, a "
                       "snapshot only where nothing is. best, audit: wide or json",
               .default_words = "export: standard output",
               .line_only = true},
    kServer,
    kTls,
    kInsecureLoopback,
    kRecheckTop,
    kRecheckAll,
    kLockFolder,
    kCacheMb,
};

constexpr std::array kDoctorOptions = {kReadLog};

constexpr std::array kCompletionPositionals = {
    PositionalSpec{.name = "SHELL",
                   .kind = ValueKind::kChoice,
                   .help = "Which shell the script is for",
                   .choices = "bash|zsh|fish"},
};

constexpr std::array kManPositionals = {
    PositionalSpec{.name = "COMMAND",
                   .kind = ValueKind::kText,
                   .help = "The page of one command instead of the overview",
                   .required = false},
};
constexpr std::array kManOptions = {
    OptionSpec{.name = "output",
               .letter = 'o',
               .kind = ValueKind::kFile,
               .argument = "FOLDER",
               .help = "Write every page into this folder (hone.1, hone-run.1, ...)",
               .line_only = true},
};

constexpr std::array kCommands = {
    CommandSpec{
        .name = "tune",
        .summary = "Search for faster schedules of a model's kernels",
        .description =
            "Cuts the model into kernels, measures candidate schedules of each on this machine and "
            "keeps every result in the log. A candidate that crashes, hangs or gives wrong results "
            "does not end the session. At the end the default and the tuned model run in turns. A "
            "kernel that is slower in the model goes back to its default schedule, and a model "
            "that is not faster keeps all its defaults.\n\nCtrl-C or SIGTERM ends it and keeps "
            "what was measured; closing the terminal leaves it running. The same command goes on "
            "where it was interrupted. After a finished session it begins a new one from the log's "
            "best schedules. `hone compile MODEL` reads the log back.\n\nWith --json, standard "
            "error gets a line with an object {\"progress\":{...}} once a second and at the end.",
        .positionals = kModelPositionals,
        .options = kTuneOptions,
        .example = "hone tune resnet18.onnx --seconds 1m",
        .meant = "optimize|optimise|autotune|search"},
    CommandSpec{
        .name = "compile",
        .summary = "Compile a model into a package",
        .description =
            "Imports an ONNX model, cuts it into fused kernels, compiles them for the target and "
            "writes one file that the runtime loads. The same model, target and schedules give the "
            "same bytes on every machine, and the target may be another machine.\n\nSchedules come "
            "from the tuning log where there is one, and one line says so; --no-log compiles the "
            "defaults. A log that is busy, damaged or from a newer Hone ends the program with 5. "
            "No path of a log enters a package.\n\nDimensions that the model leaves open are given "
            "with --dim or --shape.\n\n--emit so,header also writes NAME.so and NAME.h beside the "
            "package: a C program that includes the one and links the other needs nothing else of "
            "Hone.",
        .positionals = kModelPositionals,
        .options = kCompileOptions,
        .example = "hone compile resnet18.onnx -o resnet18.hone",
        .meant = "build|convert|export"},
    CommandSpec{
        .name = "run",
        .summary = "Run a model or package once on given inputs",
        .description =
            "Loads a package, or compiles a model in memory as `hone compile` would, and runs it "
            "once. Inputs and outputs are NumPy archives whose names are those of the graph.\n\n"
            "With --expect every output is compared, element by element: |y - e| must be at most "
            "A * max|e| + R * |e|. A and R depend on the output's type. Integers must be equal, "
            "but i8 "
            "and u8 may differ by one step, because a sum may be rounded the other way "
            "(--absolute 0 --relative 0 asks for equal bits). Float outputs of a quantised model "
            "move by such a step too: give --absolute the step's share of the largest value. "
            "The first output that differs is reported, with the worst element, and the program "
            "ends with 10.\n\nA "
            "package is code: load only what you trust.",
        .positionals = kModelOrPackagePositionals,
        .options = kRunOptions,
        .example = "hone run resnet18.hone --inputs resnet18.inputs.npz --outputs y.npz"},
    CommandSpec{
        .name = "bench",
        .summary = "Measure how long models or packages take, and compare them",
        .description =
            "Runs the model again and again for the given time, each thread on a core of its own, "
            "and prints p50, p99 and runs a second. Copies of inputs and outputs are not "
            "counted.\n\nSeveral models run in turns, each for the given time, so that other "
            "programs disturb all of them alike. For each it prints how many times as fast as the "
            "first it is, with a 95 % interval.\n\nWith --json one object is printed. For one "
            "model it has model, version, threads, target, median_us, min_us, p10_us, p90_us, "
            "p99_us, p999_us, runs_per_second and samples_us. For several, the list \"models\" has "
            "these for each except samples_us, and also turns_us and the ratio to the first.",
        .positionals = kBenchPositionals,
        .options = kBenchOptions,
        .example = "hone bench resnet18.onnx resnet18.hone --threads 2 --seconds 10",
        .meant = "time|measure|perf|compare"},
    CommandSpec{
        .name = "inspect",
        .summary = "Show what a model or package consists of",
        .description =
            "For a model: inputs and outputs, what each pass of the compiler did, every kernel "
            "with its workload hash, how often it occurs, FLOP, bytes and the time that this "
            "machine needs at least, and the memory that the plan needs at its peak, beside the "
            "sum of all tensors and the lower bound.\n\nFor a package: what is stored in it.",
        .positionals = kModelOrPackagePositionals,
        .options = kInspectOptions,
        .example = "hone inspect resnet18.onnx",
        .meant = "show|info|summary"},
    CommandSpec{
        .name = "query",
        .summary = "Show what a log holds for a model's kernels",
        .description =
            "For each kernel: the rung of the look-up that answers (exact; threads: other "
            "threads or device class of the same instruction set; predicted, if allowed; nearest; "
            "default), the record, its latency and why.",
        .positionals = kModelPositionals,
        .options = kQueryOptions,
        .example = "hone query resnet18.onnx"},
    CommandSpec{
        .name = "explain",
        .summary = "Show a task's search space, its best Traces and how models rank them",
        .description =
            "For a model: for each task the sketches of its search space, what was tried, the best "
            "Trace, and how the analytic model and the log's trees rank it. For one task, named by "
            "its workload hash: also workload, Traces, and what each feature adds to the score, "
            "against the default schedule.\n\nRecords are those of the given target and device "
            "class. Where neither is given and this machine has none, they are of the target and "
            "class that the log has most records of.",
        .positionals = kExplainPositionals,
        .options = kExplainOptions,
        .example = "hone explain resnet18.onnx"},
    CommandSpec{
        .name = "report",
        .summary = "Write a page about a tuning session",
        .description =
            "One HTML file without anything outside it: the model's predicted latency over the "
            "session, time and gain of each group of operators with its interval, share of the "
            "roofline, best-so-far curves, failures by kind, candidates by proposer, seed, "
            "versions and the command that repeats the session. The roofline is measured when this "
            "machine is of the session's device class, else it is left out.",
        .positionals = {},
        .options = kReportOptions,
        .example = "hone report -o report.html"},
    CommandSpec{.name = "check",
                .summary = "Compare every compiled kernel with the interpreter",
                .description =
                    "Runs the model kernel by kernel on real activations and compares elements "
                    "of every output (corners, both sides of tiles and tails, random ones) with "
                    "an interpreter that computes in double and knows its error bound. Where "
                    "there is a tuning log, or --snapshot or --traces, each kernel is checked "
                    "with its default schedule and with the one found there. The first wrong "
                    "kernel is named, with workload and trace, and the program ends with 10.",
                .positionals = kModelPositionals,
                .options = kCheckOptions,
                .example = "hone check resnet18.onnx",
                .meant = "verify|validate|test"},
    kQuantiseCommand,
    kPruneCommand,
    CommandSpec{.name = "zoo",
                .summary = "Write a well-known network with seeded weights as ONNX",
                .description =
                    "Writes the topology of a published network with weights drawn from a seed, so "
                    "that you can try Hone without a download. The same name and seed give the "
                    "same bytes on every machine. The weights are not trained: times are real, "
                    "outputs mean nothing. Random inputs go to NAME.inputs.npz beside the model.",
                .positionals = kZooPositionals,
                .options = kZooOptions,
                .example = "hone zoo resnet18 -o resnet18.onnx"},
    CommandSpec{.name = "doctor",
                .summary = "Check whether this machine suits Hone, with remedies",
                .description =
                    "Looks at instruction set, programs, cores, clock governor, load by other "
                    "programs, memory, disk, sandbox and log. A warning means slow or noisy "
                    "results; a fault keeps Hone from working and ends the program with 11.",
                .positionals = {},
                .options = kDoctorOptions,
                .example = "hone doctor"},
    CommandSpec{
        .name = "cache",
        .summary = "Show the size of the caches, or delete them",
        .description =
            "There are two caches in $XDG_CACHE_HOME/hone, else ~/.cache/hone: built kernels (by "
            "workload, schedule, target and the version of Hone that built them) and values of the "
            "oracle (by workload and seed). They only save time: compiling gives the same bytes "
            "with and without them, a damaged entry is ignored and removed, and a folder that is "
            "full or not writable is no error. They can be deleted at any time, and all programs "
            "may share them.\n\nTogether they take at most --cache-mb megabytes (also a key of "
            "config.toml); then the least recently used entries go.\n\nA built kernel is code. So "
            "Hone reads only files that belong to you, in folders that only you can open (0700).",
        .positionals = kCachePositionals,
        .options = kCacheOptions,
        .example = "hone cache info"},
    CommandSpec{
        .name = "db",
        .summary = "Inspect, export, merge, check or shrink a tuning log",
        .description =
            "stats counts what it holds; best prints the best record of every kernel; export "
            "writes every fact as JSON, one a line; merge adds another log, whose records then "
            "count as screened; snapshot writes a file that never changes and prints its pin "
            "FILE@sha256:...; verify checks every fact; compact reduces samples to a summary and "
            "frees space; audit prints a farm's audit trail, oldest first: who issued or revoked "
            "certificates, drained devices, cancelled sessions or took snapshots; recheck measures "
            "the best schedules of this machine's devices again, interleaved with the default, "
            "where a device's driver has changed since they were measured: look-ups use the new "
            "times, and nothing is searched.\n\nWith --server in place of LOG, stats, best, export "
            "and verify take a snapshot of the server's log, "
            "in the folder for temporary files (TMPDIR), and read that; snapshot keeps it.\n\nA "
            "log that is busy, damaged or from a newer Hone ends the program with 5.",
        .positionals = kDbPositionals,
        .options = kDbOptions,
        .example = "hone db stats"},
    kSessionCommand,
    kDeviceCommand,
    CommandSpec{.name = "completion",
                .summary = "Print a completion script for bash, zsh or fish",
                .description = "For bash: hone completion bash > "
                               "~/.local/share/bash-completion/completions/hone\n\nFor zsh: hone "
                               "completion zsh > DIR/_hone, where DIR is in $fpath.\n\nFor fish: "
                               "hone completion fish > ~/.config/fish/completions/hone.fish",
                .positionals = kCompletionPositionals,
                .options = {},
                .example = "source <(hone completion bash)"},
    CommandSpec{.name = "version",
                .summary = "Print every version number",
                .description = "The version of Hone, of each format that it writes, and of the "
                               "libraries that results depend on; `hone --version` is the same.",
                .positionals = {},
                .options = {},
                .example = "hone version"},
    CommandSpec{.name = "man",
                .summary = "Print or write the manual pages",
                .description = "Prints a page in man(7) format: pipe it into man -l -.",
                .positionals = kManPositionals,
                .options = kManOptions,
                .example = "hone man run | man -l -"},
};

}  // namespace

const OptionSpec* CommandSpec::FindOption(std::string_view option) const {
  for (const OptionSpec& spec : options) {
    if (spec.name == option) return &spec;
  }
  for (const OptionSpec& spec : kCommonOptions) {
    if (spec.name == option) return &spec;
  }
  return nullptr;
}

std::span<const CommandSpec> Commands() { return kCommands; }

const CommandSpec* FindCommand(std::string_view name) {
  for (const CommandSpec& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::span<const OptionSpec> CommonOptions() { return kCommonOptions; }

}  // namespace hone::client
