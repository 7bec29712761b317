#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "client/command.h"
#include "client/log_trace_source.h"
#include "client/model_inputs.h"
#include "client/trace_choice.h"
#include "compiler/compile_model.h"
#include "graph/graph.h"
#include "runtime/executable.h"

namespace hone::client {

/// A model ready to run, from a package or compiled just now.
struct LoadedModel {
  std::string name;  ///< the file's name without its ending
  std::shared_ptr<const runtime::Executable> executable;
  std::vector<InputSpec> inputs;  ///< in the plan's order
  int threads = 0;  ///< to run with: a package's --threads; 0: what the code was made for
  std::string log;  ///< that gave the schedule of a kernel; empty: none did, or a package
};

/// True when the file starts as a package does. Errors of reading it.
absl::StatusOr<bool> IsPackage(const std::string& path);

/// "dir/NAME.onnx" to "NAME".
std::string ModelName(const std::string& path);

/// Imports a model with the command's --dim, --shape, --bind, --cut and --precision. `data_files`,
/// if any, gets the paths of its external data.
absl::StatusOr<graph::Graph> ImportModel(const Arguments& arguments, const std::string& path,
                                         std::vector<std::string>* data_files = nullptr);

/// The chosen log, snapshot or server, with --device-class and --require where the command has it.
/// Errors of opening it. `target`: whose device class counts without --device-class; empty:
/// --target's.
absl::StatusOr<std::unique_ptr<LogTraceSource>> OpenLogTraces(const Arguments& arguments,
                                                              const TraceChoice& choice,
                                                              const std::string& target = "");

/// What was chosen, opened: a folder, a log, or the defaults.
absl::StatusOr<std::unique_ptr<compiler::TraceSource>> OpenTraces(const Arguments& arguments,
                                                                  const TraceChoice& choice,
                                                                  const std::string& target = "");

/// hone-builder on all usable cores.
measure::BuilderOptions LocalBuilder();
/// The same with the user's cache.
measure::BuilderOptions LocalBuilder(const Arguments& arguments, const Environment& environment);

/// An error of the compiler after a successful import, with its exit code. One that has a code (a
/// log's, a server's) keeps it; what the user can mend (an unsupported operator, an index out of
/// range, no memory) stays; a builder that is missing or cannot be locked up is the installation's
/// or the machine's; all else, a builder's crash, silence or nonsense among it, is a fault.
absl::Status CompileError(const absl::Status& status);
/// The same where the schedules came from OpenTraces: of --traces, one that does not fit is the
/// user's to mend; a log that nobody named is told how to do without.
absl::Status CompileError(const absl::Status& status, const TraceChoice& choice);

/// Compiles for `target` (empty: --target) with the chosen schedules. `scratch_folder`:
/// compiler::CompileOptions.
absl::StatusOr<compiler::CompiledModel> CompileGraph(const Arguments& arguments,
                                                     const TraceChoice& choice, graph::Graph graph,
                                                     const Environment& environment,
                                                     const std::string& scratch_folder = "",
                                                     const std::string& target = "");

/// Opens a package, or compiles a model in memory with the schedules of ChooseTraces; says on
/// `context.err`, but not with --json, where a log answered that nobody named. Options that only a
/// model has are usage errors with a package.
absl::StatusOr<LoadedModel> LoadModel(const CommandContext& context, const std::string& path);

}  // namespace hone::client
