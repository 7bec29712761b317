#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "client/npz.h"
#include "graph/graph.h"
#include "ir/plan.h"
#include "ir/workload.h"

namespace hone::client {

/// An input that a model wants.
struct InputSpec {
  std::string name;
  graph::TensorType type;
  ir::ValueRange range;  ///< what is drawn lies in it
};

/// "x: f32[1,3,224,224]".
std::string Describe(const InputSpec& spec);

/// The inputs of an imported model, with their ranges.
std::vector<InputSpec> InputsOf(const graph::Graph& graph);

/// Those of a package, which does not know ranges: integers are drawn from 0 and 1, which suit
/// masks and indices of any table.
std::vector<InputSpec> InputsOf(const ir::Plan& plan);

/// A note for each input that the model itself declares with an extent of 0, which old exporters
/// write for a size that they leave open: such a model computes nothing unless --shape says more.
std::string EmptyInputsNote(const Arguments& arguments, const std::vector<InputSpec>& specs);

/// Uniform numbers in the spec's range (integers: half open; bool: 0 and 1), a function of `seed`
/// and `index` alone.
graph::TensorData DrawInput(const InputSpec& spec, size_t index, uint64_t seed);

/// The arrays of --inputs and --input, one for each of `specs`, in that order. Arrays of --inputs
/// that the model has no use for are named in a warning on `err`; one of --input is an error, as is
/// an input that has no value or one of another dtype or shape.
absl::StatusOr<NamedTensors> ReadInputs(const Arguments& arguments,
                                        const std::vector<InputSpec>& specs, std::ostream& err);

/// As ReadInputs; without --inputs it takes NAME.inputs.npz beside the model, if there is one, and
/// what is still missing is drawn from --seed. Arrays of that file that do not fit are named in a
/// warning and drawn too.
absl::StatusOr<NamedTensors> ReadOrDrawInputs(const Arguments& arguments,
                                              const std::string& model_path,
                                              const std::vector<InputSpec>& specs,
                                              std::ostream& err);

}  // namespace hone::client
