#include "client/onnxruntime_subject.h"

#include <unistd.h>

#include <cerrno>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/exit_code.h"
#include "client/npy.h"

namespace hone::client {
namespace {

// Reads a line of JSON with what to load and the sizes of the inputs, then those as .npy; answers
// {"version"} or {"error", "absent"}. Then each line is a number of runs, answered with a list of
// their times.
constexpr char kScript[] = R"(
import io, json, os, sys, time
source, answer = sys.stdin.buffer, lambda what: print(json.dumps(what), flush=True)
ask = json.loads(source.readline())
arrays = [(name, source.read(size)) for name, size in ask["inputs"]]
try:
    import numpy as np
    import onnxruntime as ort
except ImportError as error:
    answer({"error": str(error), "absent": True})
    sys.exit(0)
try:
    feeds = {name: np.load(io.BytesIO(data)) for name, data in arrays}
    feeds.update({name: np.load(path) for name, path in ask["bound"].items()})
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = ask["threads"], 1
    options.log_severity_level = 3
    cpus = ask["cpus"]
    if len(cpus) > 1:  # the pool has one thread less, the caller is the first; CPUs count from 1
        options.add_session_config_entry("session.intra_op_thread_affinities",
                                         ";".join(str(c + 1) for c in cpus[1:]))
    session = ort.InferenceSession(ask["model"], options, providers=["CPUExecutionProvider"])
    if cpus:
        os.sched_setaffinity(0, cpus[:1])
    feeds = {i.name: feeds[i.name] for i in session.get_inputs() if i.name in feeds}
    inputs = {k: ort.OrtValue.ortvalue_from_numpy(v) for k, v in feeds.items()}
    outputs = {o.name: ort.OrtValue.ortvalue_from_numpy(y)
               for o, y in zip(session.get_outputs(), session.run(None, feeds))}
    bound = session.io_binding()
    for k, v in inputs.items():
        bound.bind_ortvalue_input(k, v)
    for k, v in outputs.items():
        bound.bind_ortvalue_output(k, v)
    session.run_with_iobinding(bound)
except Exception as error:
    answer({"error": " ".join(str(error).split())})
    sys.exit(0)
answer({"version": ort.__version__})
clock, run = time.perf_counter_ns, session.run_with_iobinding
for line in source:
    times = []
    for _ in range(int(line)):
        begin = clock()
        run(bound)
        times.append(clock() - begin)
    answer(times)
)";

}  // namespace

absl::StatusOr<std::unique_ptr<OnnxRuntimeSubject>> OnnxRuntimeSubject::Start(
    const Options& options, const NamedTensors& inputs) {
  SubprocessOptions spawn;
  spawn.argv = {"/usr/bin/env", "python3", "-c", kScript};
  spawn.standard_error = ChildStream::kNull;
  HONE_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Spawn(spawn));
  std::unique_ptr<OnnxRuntimeSubject> subject(
      new OnnxRuntimeSubject(std::move(process), options.threads));
  nlohmann::json ask = {{"model", options.model_path},
                        {"threads", options.threads},
                        {"cpus", options.cpus},
                        {"bound", options.bound},
                        {"inputs", nlohmann::json::array()}};
  std::string arrays;
  for (const auto& [name, tensor] : inputs) {
    const std::string bytes = FormatNpy(tensor);
    ask["inputs"].push_back({name, bytes.size()});
    arrays += bytes;
  }
  // A python3 that is missing shows in what it answers: nothing.
  static_cast<void>(subject->Tell(ask.dump() + "\n" + arrays));
  const auto line = subject->ReadLine();
  const auto answer = line.ok() ? nlohmann::json::parse(*line, nullptr, false) : nlohmann::json();
  if (answer.is_object() && answer.contains("version")) {
    subject->version_ = answer["version"].get<std::string>();
    return subject;
  }
  const bool refused = answer.is_object() && !answer.contains("absent");
  const std::string why = answer.is_object() ? answer["error"].get<std::string>() : "no python3";
  if (refused) {
    return absl::InvalidArgumentError(
        fmt::format("onnxruntime does not run '{}': {}", options.model_path, why));
  }
  return absl::FailedPreconditionError(
      fmt::format("--against onnxruntime: the python3 that PATH finds cannot import it ({}); "
                  "install it with pip, or put the Python that has it first in PATH",
                  why));
}

absl::Status OnnxRuntimeSubject::Tell(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(process_.standard_input().get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::UnavailableError("onnxruntime's process has ended");
    text.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> OnnxRuntimeSubject::ReadLine() {
  size_t end = 0;
  while ((end = unread_.find('\n')) == std::string::npos) {
    char buffer[1 << 16];
    const ssize_t n = ::read(process_.standard_output().get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return WithExitCode(absl::UnavailableError("onnxruntime's process has ended by itself"),
                          ExitCode::kBadInput);
    }
    unread_.append(buffer, static_cast<size_t>(n));
  }
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

absl::Status OnnxRuntimeSubject::Run(int runs, std::vector<int64_t>& run_ns) {
  static_cast<void>(Tell(fmt::format("{}\n", runs)));  // if it has ended, ReadLine says so
  HONE_ASSIGN_OR_RETURN(const std::string line, ReadLine());
  const auto times = nlohmann::json::parse(line, nullptr, false);
  if (!times.is_array() || times.size() != static_cast<size_t>(runs)) {
    return absl::InternalError("onnxruntime's process answered something else than times");
  }
  for (const auto& ns : times) run_ns.push_back(ns.get<int64_t>());
  return absl::OkStatus();
}

}  // namespace hone::client
