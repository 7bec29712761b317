#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "graph/grouping.h"
#include "ir/plan.h"
#include "ir/workload.h"

namespace hone::compiler {

/// A Workload of the model; groups with equal Workloads share it.
struct ModelKernel {
  ir::Workload workload;
  std::string text;
  std::string hash;  ///< 32 hex digits
  int count = 0;     ///< how many steps run it
  std::string name;  ///< for people: the operators of its first group
};

/// One kernel run or extern routine, on values of the graph.
struct ModelStep {
  ir::PlanStepKind kind = ir::PlanStepKind::kKernel;
  int kernel = -1;                        ///< index into ModelSteps::kernels
  std::vector<graph::ValueId> inputs;     ///< kernel: by workload.Inputs(); extern: all operands
  std::vector<graph::ValueId> constants;  ///< kernel: by workload.Constants()
  std::vector<graph::ValueId> outputs;
  std::string extern_name;
  std::vector<int64_t> extern_attributes;
};

/// A value that lies in another's memory.
struct ValueAlias {
  graph::ValueId of = graph::kNoValue;  ///< kNoValue: it has memory of its own
  int64_t offset_bytes = 0;
};

/// Everything that runs when the model runs, before schedules and memory are chosen.
struct ModelSteps {
  /// The compiled graph; copies that outputs need are values at the end, and `outputs` names them.
  graph::Graph graph;
  std::vector<ModelKernel> kernels;  ///< by first use
  std::vector<ModelStep> steps;      ///< topological
  std::vector<ValueAlias> aliases;   ///< by value
  std::vector<int> output_of;  ///< by value: number of the model's output it is written to, or -1
};

/// Turns groups into steps. Relabellings become aliases where the memory allows it (a part at a
/// multiple of 64 bytes of memory that is ours), copies elsewhere. Every output of the model gets a
/// value that a step writes, so an output that is an input, a constant, or another output again is
/// copied. Steps whose results have no elements are left out. Errors are those of BuildWorkload.
absl::StatusOr<ModelSteps> MakeSteps(graph::Graph graph, const std::vector<graph::Group>& groups);

}  // namespace hone::compiler
