#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

#include "compiler/compile_model.h"
#include "graph/graph.h"
#include "measure/builder_client.h"

namespace hone::conformance {

enum class Verdict {
  kPassed,
  kFolded,       ///< right, but nothing was left to run: known while compiling
  kUnsupported,  ///< Hone says that it lacks something
  kFailed,       ///< another error, or a wrong output
};

/// What became of one operator case.
struct CaseOutcome {
  Verdict verdict = Verdict::kFailed;
  std::string reason;         ///< why it did not pass
  bool bound_inputs = false;  ///< some inputs were bound while compiling (`--bind`)
  bool has_extern = false;    ///< some steps are routines of the runtime
};

/// How far a float output may be from what is expected: |y - e| <= absolute + share * max|e| +
/// relative * |e|, where a half type's `relative` is at least two units in the last place.
struct Tolerance {
  double absolute = 1e-7;  ///< ONNX's backend tests have this
  double relative = 1e-3;  ///< and this
  double share = 0;        ///< for sums whose terms cancel
  double half_share = 0;   ///< the same of 16-bit outputs: rounded again and again on the way
};

/// The model of the case in `folder` as a graph, with the dimensions of its first set's inputs;
/// `bound`: values of some inputs were bound as well.
absl::StatusOr<graph::Graph> ImportCase(const std::filesystem::path& folder, bool* bound);

/// Runs the case in `folder` (model.onnx and test_data_set_K/{input,output}_N.pb) as a user's model
/// goes: import, passes, groups, the default schedule, code for `target` made by `builder`, a
/// package, the runtime. Symbolic dimensions are those of the first set's inputs; inputs whose
/// values decide shapes are bound to it, as the import's message says. Integers compare exactly.
/// Thread-safe.
CaseOutcome RunOperatorCase(const std::filesystem::path& folder, const std::string& target,
                            const Tolerance& tolerance, measure::BuilderClient& builder);

}  // namespace hone::conformance
