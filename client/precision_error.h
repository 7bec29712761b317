#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

#include "client/command.h"
#include "client/npz.h"
#include "client/trace_choice.h"
#include "compiler/compile_model.h"
#include "runtime/package.h"

// What a model loses by its precision.
namespace hone::client {

/// The error of outputs against those of the same model in f32, of floats alone. Nothing where
/// either has a number that is not finite, or all of f32's are zero.
std::optional<runtime::PackageError> ErrorOf(const NamedTensors& outputs,
                                             const NamedTensors& reference);

/// Signal to noise; 180 dB where the noise is below what is counted.
double DecibelsOf(const runtime::PackageError& error);

/// "precision bf16, accuracy class default; against f32: noise 0.0042 of the signal (47.6 dB),
/// 0.013 at worst".
std::string PrecisionText(const runtime::PackageInfo& info);
nlohmann::ordered_json PrecisionJson(const runtime::PackageInfo& info);

/// Runs `model`, compiled from the command's MODEL below f32, and the same in f32 by default
/// schedules on the inputs that --seed 0 would draw. Nothing where this machine cannot run
/// `target`. Errors of importing, compiling and running.
absl::StatusOr<std::optional<runtime::PackageError>> MeasurePrecisionError(
    CommandContext& context, const compiler::CompiledModel& model, const std::string& target);

}  // namespace hone::client
