#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "client/command.h"
#include "client/log_trace_source.h"
#include "client/model_inputs.h"
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
};

/// True when the file starts as a package does. Errors of reading it.
absl::StatusOr<bool> IsPackage(const std::string& path);

/// "dir/NAME.onnx" to "NAME".
std::string ModelName(const std::string& path);

/// Imports a model with the command's --dim, --shape and --bind. `data_files`, if any, gets the
/// paths of its external data.
absl::StatusOr<graph::Graph> ImportModel(const Arguments& arguments, const std::string& path,
                                         std::vector<std::string>* data_files = nullptr);

/// The log of --db or --snapshot, with --device-class and --require where the command has it.
/// Without either, and without --server, that of `default_path` where one is given. Errors of
/// opening it; usage errors where no log or several are given.
absl::StatusOr<std::unique_ptr<LogTraceSource>> OpenLogTraces(const Arguments& arguments,
                                                              const std::string& default_path = "");

/// Where the schedules come from: --traces, else the log, else the defaults.
absl::StatusOr<std::unique_ptr<compiler::TraceSource>> OpenTraces(const Arguments& arguments);

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
/// user's to mend.
absl::Status CompileError(const absl::Status& status, const Arguments& arguments);

/// Compiles for --target with the schedules of OpenTraces.
absl::StatusOr<compiler::CompiledModel> CompileGraph(const Arguments& arguments, graph::Graph graph,
                                                     const Environment& environment);

/// Opens a package or compiles a model, in memory. Options that only a model has are usage errors
/// with a package.
absl::StatusOr<LoadedModel> LoadModel(const Arguments& arguments, const std::string& path,
                                      const Environment& environment);

}  // namespace hone::client
