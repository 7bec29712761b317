#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/npz.h"
#include "compiler/trace_source.h"
#include "graph/graph.h"
#include "ir/accuracy_class.h"
#include "measure/builder_client.h"

// Is the compiled code right? Runs a model kernel by kernel on real activations and compares
// sampled elements of each output with the interpreter.
namespace hone::client {

struct KernelCheckOptions {
  std::string target;  ///< resolved; this host must be able to run it
  ir::AccuracyClass accuracy =
      ir::AccuracyClass::kDefault;  ///< where the oracle's bound says nothing
  /// Chains of layers are one kernel each where this says so; kAuto: they are not.
  compiler::CascadeRun cascades = compiler::CascadeRun::kAuto;
  int points = 32;                            ///< elements of each output
  bool every_step = false;                    ///< else each kernel where it occurs first
  uint64_t seed = 0;                          ///< of the sampled points
  int64_t kernel_time_ns = 2'000'000'000;     ///< the oracle of one step is stopped after that
  std::shared_ptr<measure::DiskCache> cache;  ///< of the oracle's values; null: none
};

/// One step's verdict.
struct CheckedStep {
  std::string name;  ///< operators
  std::string workload_hash;
  std::string rung;
  int step = 0;
  int points = 0;          ///< elements compared
  double worst_share = 0;  ///< largest |code - oracle| / allowed
};

/// The first element that is wrong.
struct WrongElement {
  CheckedStep step;
  std::string value;  ///< name of the graph's value
  std::string index;  ///< "[0, 3, 17]"
  double code = 0, oracle = 0;
  double bound = 0;  ///< how far apart they may be
  std::string workload, trace;
};

struct KernelCheckReport {
  std::vector<CheckedStep> steps;
  int unchecked_routines = 0;         ///< extern steps: run, but they have no oracle here
  std::optional<WrongElement> wrong;  ///< checking stops at the first
};

/// `inputs`: one for each of graph.inputs, in order. An element is wrong when it is further from
/// the oracle than twice the oracle's error bound, or, where that is larger than every element,
/// than the accuracy class allows. Errors are those of the compiler, and OutOfRange for an
/// index in an input's values.
absl::StatusOr<KernelCheckReport> CheckKernels(graph::Graph graph, const NamedTensors& inputs,
                                               const KernelCheckOptions& options,
                                               measure::BuilderClient& builder,
                                               compiler::TraceSource& traces,
                                               const MonotonicClock& clock);

}  // namespace hone::client
