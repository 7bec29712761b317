#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "compiler/batch_run.h"
#include "compiler/model_steps.h"
#include "compiler/trace_source.h"
#include "graph/graph.h"
#include "graph/pipeline.h"
#include "ir/accuracy_class.h"
#include "ir/workload_cost.h"
#include "measure/builder_client.h"
#include "runtime/package.h"
#include "runtime/region.h"

namespace hone::compiler {

struct CompileOptions {
  std::string target;        ///< resolved text, see ir::ParseTarget
  std::string device_class;  ///< of the records looked up; goes into the package
  /// Where packed constants are kept until the package is written, in a file without a name; empty:
  /// in memory.
  std::string scratch_folder;
  BatchRun batch = BatchRun::kAuto;
  BranchRun branches = BranchRun::kAuto;
  CascadeRun cascades = CascadeRun::kAuto;
  /// Class that `traces` keeps to; goes into the package.
  ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;
};

/// One kernel of the model: a Workload and where its schedule came from.
struct KernelReport {
  std::string name;  ///< the operators of its first group
  std::string workload_hash;
  std::string workload;  ///< text
  std::string trace;     ///< text of the schedule used
  std::string rung;
  std::string why;                 ///< FoundTrace::why
  bool judged = false;             ///< FoundTrace::judged
  bool noisy = false;              ///< FoundTrace::noisy
  bool unused_prediction = false;  ///< FoundTrace::unused_prediction
  int count = 0;                   ///< how often a run of the model runs it
  int64_t operations = 0;          ///< points of all Stages
  ir::WorkloadCost cost;           ///< of one step
  int64_t lower_ns = 0;
  int64_t codegen_ns = 0;
};

/// A routine of the runtime that runs an operator which no loop nest expresses (TopK, Scatter*), by
/// name and shapes.
struct ExternReport {
  std::string name;   ///< "TopK of f32[4,100]"
  int count = 0;      ///< steps that run it
  int64_t bytes = 0;  ///< of operands and results, each moved once
};

/// What compiling did, for `hone compile`, `hone inspect` and tests.
struct CompileReport {
  std::vector<graph::PassReport> passes;
  std::vector<KernelReport> kernels;  ///< by Plan::kernels
  std::vector<ExternReport> externs;  ///< by first use
  int num_steps = 0;                  ///< those of kernels and those of externs
  int64_t images = 1;                 ///< how often all steps run: image by image
  std::string batch_why;              ///< BatchChoice::why
  bool batch_judged = false;          ///< BatchChoice::judged
  CascadeChoice cascades;             ///< `apart` aside
  int possible_forks = 0;             ///< into branches that may be faster side by side
  int forks = 0;                      ///< of those, how many run so
  std::string branches_why;           ///< one line; empty: there is nothing to choose
  bool branches_judged = false;       ///< the source of the schedules said so
  /// Kernels of attention that the log knows only as the two that they were; see
  /// CountStaleAttention.
  int stale_attention = 0;
  int num_aliases = 0;  ///< values that are parts of others' memory: no step, no bytes
  int64_t constant_bytes = 0;
  int64_t code_bytes = 0;
  int64_t arena_bytes = 0;        ///< the peak
  int64_t sum_bytes = 0;          ///< of all tensors in the arena, as if nothing were shared
  int64_t lower_bound_bytes = 0;  ///< no order and no placement needs less
};

/// A compiled model with the memory its package refers to. Movable (the spans stay valid).
struct CompiledModel {
  runtime::Region constants;
  std::string code;
  runtime::Package package;  ///< constants and code are those above
  CompileReport report;

  CompiledModel() = default;
  CompiledModel(CompiledModel&&) = default;
  CompiledModel& operator=(CompiledModel&&) = default;
};

/// Compiles a graph into a package, with products in the graph's precision. compile_model.cc lists
/// the steps of the compiler from top to bottom. Deterministic: equal graph, options and answers of
/// `traces` give equal packages. Errors: kInvalidArgument for a bad target or a Workload that its
/// schedule does not fit; those of passes, grouping, `traces` and `builder`.
absl::StatusOr<CompiledModel> CompileModel(graph::Graph graph, const CompileOptions& options,
                                           measure::BuilderClient& builder, TraceSource& traces);

}  // namespace hone::compiler
