#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/model_inputs.h"
#include "client/npz.h"

namespace hone::client {

/// Data that a model is run on to learn its ranges and errors.
struct CalibrationSet {
  std::vector<NamedTensors> runs;  ///< the model's inputs, in its order; never empty
  bool drawn = false;              ///< random, from a seed: the user gave no data
};

/// Archives of the inputs by name, each a file or all .npz of a folder in the order of their names.
/// An array is one run's, or holds several behind each other along its first axis. An array
/// `labels` is left alone. InvalidArgument, with file and array: none, an input without an array,
/// an array of another name, dtype or shape, without elements, or with a number that is not finite.
absl::StatusOr<CalibrationSet> ReadCalibration(const std::vector<std::string>& paths,
                                               const std::vector<InputSpec>& specs);

/// `runs` drawn from seeds of their own.
CalibrationSet DrawCalibration(const std::vector<InputSpec>& specs, int runs);

/// The array `labels` of an archive, integers; and whether the archive has data too.
struct LabelSet {
  std::vector<int64_t> labels;
  bool has_data = false;
};
absl::StatusOr<LabelSet> ReadLabels(const std::string& path);

}  // namespace hone::client
