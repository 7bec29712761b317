"""The tables of docs/ARCHITECTURE.md that tests/tidy/check_tree.py enforces."""

# A folder includes its own files and those of lower floors; same-floor folders never see each other.
FLOORS = {
    "base": 0, "ir": 1, "graph": 2, "schedule": 2, "codegen": 3, "runtime": 4, "measure": 5,
    "costmodel": 6, "db": 6, "search": 7, "compiler": 7, "proto": 8,
    "worker": 9, "server": 9, "client": 9,
}

# What may include a third-party header (regular expressions on the include and on the path).
OWNERS = [
    (r"google/protobuf/|.*\.pb\.h$", r"graph/onnx_|proto/"),
    (r"llvm(-c)?/", r"codegen/llvm_|codegen/(cpu|cuda)/llvm_|codegen/link\.cc"),
    (r"lld/", r"codegen/link\.cc"),
    (r"nvPTXCompiler", r"codegen/cuda/assemble\.cc"),
    (r"xgboost/", r"costmodel/xgboost_model\.cc"),
    (r"sqlite3", r"db/sqlite_"),
    (r"spdlog/", r"base/log\.cc"),
    (r"CLI/", r"base/option_parser\.cc|client/command_line\.cc|measure/run_main\.cc"),
    (r"toml\+\+/", r"base/toml_file\.cc"),
    (r"nlohmann/json_fwd", r"(client|server/web)/"),
    (r"nlohmann/", r"(client|server/web)/.*\.cc"),
    (r"zip\.h|zipconf\.h", r"client/npz\.cc"),
    (r"grpc(pp)?/", r"(server|worker|client)/"),
    (r"openssl/", r"base/(sha256|certificate|credential_check)\.|server/ca\.cc"),
    (r"microhttpd", r"server/web/"),
    (r"prometheus/", r"server/metrics\.cc"),
    (r"seccomp\.h", r"measure/sandbox\.cc"),
    (r"hone/status\.h", r"include/hone/"),  # base/core/status.h, installed under this name
    (r"cuda|nvrtc|cudart", r"nobody"),  # declared by ourselves, found by dlopen
    # Only these parts of Abseil; the runtime and base/core are checked apart.
    (r"absl/(status|strings)/|absl/types/span\.h|absl/container/flat_hash_", r".*"),
    (r"absl/synchronization/mutex\.h", r"\w+/main\.cc"),  # to turn its deadlock search off
    (r"absl/", r"nobody"),
    (r"fmt/", r".*"),
]

# What depends on the kind of device stands in a folder of that name on each floor. Its own folders
# include it, the floor's registry names it, tests and benchmarks may look.
KINDS = r"(cpu|cuda)"
KIND_REGISTRIES = (r"ir/target\.cc|ir/kind_facts\.cc|graph/group_limits\.cc|schedule/kind_sketches\.cc|costmodel/features\.cc|"
                   r"measure/device\.cc|measure/device_probe\.cc|measure/kind_checks\.cc|measure/kind_runner\.cc|codegen/llvm_codegen\.cc|codegen/kind_code\.cc|runtime/device\.cc")

# A text that is compared with the name of a kind, or As<> of a kind's own struct.
KIND_CASE = rf'([=!]=|starts_with\(|StartsWith\(.*,)\s*"{KINDS}[:"]|"{KINDS}:?"\s*[=!]=|\bAs<C(pu|uda)Target>'

# The runtime stands on these alone, whatever they include in turn (checked transitively).
RUNTIME_BASE = r"(runtime/|base/core/|base/versions\.h|hone/|include/hone/|ir/)"

# Time, randomness and environment enter through base or main; names of the C and C++ libraries.
HIDDEN_INPUTS = [
    (r"\b(system|steady|high_resolution|utc|file)_clock\b", "a clock; take a hone::MonotonicClock"),
    (r"\b(clock_gettime|gettimeofday|clock_nanosleep|timespec_get|ftime)\b", "a clock"),
    (r"\b(std::|::)?time\s*\(\s*(nullptr|NULL|0|&)", "a clock; take a hone::WallClock"),
    (r"\b__?rdtscp?\b|__builtin_ia32_rdtsc", "a clock"),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<![\w.>])sleep\s*\(\s*\d", "a sleep"),
    (r"\bwait_(for|until)\s*\(\s*\w+\s*,", "a wait for time to pass; use WaitFor of base/core/timed_wait.h"),
    (r"\b(random_device|mt19937(_64)?|default_random_engine|minstd_rand0?|(uniform_(int|real)|normal|bernoulli)_distribution)\b",
     "random numbers; use hone::Random"),
    (r"\b(s?rand|[ds]rand48|random_shuffle|getrandom|getentropy|arc4random)\s*\(", "random numbers"),
    (r"#\s*include\s*<random>", "random numbers; use base/core/random.h"),
]
# Functions of the C library that nobody calls.
BANNED_CALLS = [
    (r"\bv?[sf]?scanf\s*\(", "scanf, which takes less than it was given without a word; use Words of base/core/words.h"),
]
ENVIRONMENT = r"\b(secure_)?getenv\s*\(|\bsetenv\s*\(|\bputenv\s*\("
# The sandboxed runner has the runtime in it, and neither of these files.
CONTROL_GROUP = r"\b(UsableCores|CgroupCpuLimit)\s*\("
MAY_NOT_READ_CONTROL_GROUP = r"runtime/(?!c_api\.cc)"
MAY_READ_ENVIRONMENT = r"client/|runtime/c_api\.cc|(server|worker|measure)/\w*main\.cc|tests/"
MAY_KEEP_TIME = r"base/|tests/base/"

# No drawers.
DRAWERS = {"util", "utils", "common", "helper", "helpers", "misc"}

MAX_LINES = {".h": 250, ".cc": 500, ".py": 500, ".sh": 250}
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100
MAX_FILE_BYTES = 1 << 20

# Words that promise instead of doing, and traces of somebody's machine. Written in pieces so that
# this file does not contain them.
FORBIDDEN_WORDS = [
    (r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b", "a promise; do it, or say in docs/PROGRESS.md what is missing"),
    (r"\bnot (yet )?implem" + r"ented\b|\bunimplem" + r"ented\b(?!Error)", "a stub"),
    (r"\bDIS" + r"ABLED_\w", "a switched-off test"),
    (r"GTEST_" + r"SKIP\(\)\s*;", "a skip without a reason"),
    (r"(^|[^A-Za-z0-9_.])/(wo" + r"rk|fa" + r"rm)/|/tmp/(bui" + r"ld|ho" + r"ne)\b", "a path of one machine"),
    (r"(?<!struct )(\b|\\n)O" + r"f(\s|$)", "a sentence that begins with 'O" + "f'; begin with what it is about"),
]
