#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "compiler/batch_run.h"
#include "graph/onnx_import/import.h"
#include "ir/accuracy_class.h"

// Reading the options that every command with a model has: --dim, --shape, --bind, --cut, --batch,
// --target, --threads.
namespace hone::client {

/// --dim NAME=N, --shape INPUT=1x3x224x224, --bind INPUT=F.npy and --cut NAMES, each repeated.
/// Usage errors for malformed ones and names given twice; those of ReadNpy.
absl::StatusOr<graph::ImportOptions> ReadImportOptions(const Arguments& arguments);

/// The resolved target: --target (native where not given) with --threads, else the usable cores.
/// Usage errors: not a target, threads said twice on the line and differently. The
/// line's word on threads wins over what the config file says, then the target's. With --precision
/// bf16, native has no products of bf16 where they are slow here (client/bf16_gain.h).
absl::StatusOr<std::string> ReadTarget(const Arguments& arguments);
/// Whether a --target leaves it to this machine which extensions it has.
bool IsPlainNative(const std::string& target);
/// --target, then each --also, resolved; a usage error where one is said twice.
absl::StatusOr<std::vector<std::string>> ReadTargets(const Arguments& arguments);

/// --precision, or f32 where the command has no such option.
absl::StatusOr<ir::DType> ReadPrecision(const Arguments& arguments);

/// --batch, or automatic where the command has no such option.
compiler::BatchRun ReadBatch(const Arguments& arguments);
/// The same of --branches.
compiler::BranchRun ReadBranches(const Arguments& arguments);
/// The same of --cascades.
compiler::CascadeRun ReadCascades(const Arguments& arguments);

/// --accuracy, or the default class where the command has no such option. A usage error for a class
/// that nothing is implemented for yet.
absl::StatusOr<ir::AccuracyClass> ReadAccuracy(const Arguments& arguments);

/// "NAME=VALUE" in two; a usage error that names the option otherwise.
absl::StatusOr<std::pair<std::string, std::string>> SplitAssignment(const std::string& option,
                                                                    const std::string& text);

}  // namespace hone::client
