#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "graph/grouping.h"
#include "ir/plan.h"
#include "ir/workload.h"
#include "schedule/lower.h"

namespace hone::compiler {

/// A Workload of the model; groups with equal Workloads share it.
struct ModelKernel {
  ir::Workload workload;
  std::string text;
  std::string hash;           ///< 32 hex digits
  schedule::Binding binding;  ///< empty: all buffers dense
  int count = 0;              ///< how many steps run it
  std::string name;           ///< for people: the operators of its first group
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
  /// A Concat that is still a copy: the axis, and the operands one after the other; else -1 and
  /// none.
  int concat_axis = -1;
  std::vector<graph::ValueId> concat_operands;
  std::vector<ir::PlanName> names;  ///< whom an error is about, by input; `step` is not set
};

/// A value that lies in another's memory: from some byte on in one piece, or (an operand of a
/// Concat made in place) from some place on along one axis.
struct ValueAlias {
  graph::ValueId of = graph::kNoValue;  ///< kNoValue: it has memory of its own
  int64_t offset_bytes = 0;             ///< in one piece
  int concat_axis = -1;                 ///< not in one piece: the axis
  int64_t concat_start = 0;             ///< and the first place along it
};

/// How it was decided in which order the images of a batch run.
struct BatchChoice {
  std::string why;      ///< one line; empty: the model has no batch
  bool judged = false;  ///< the source of the schedules said so
  /// Hash and count of the kernels of all images together; empty unless either way can be.
  std::vector<std::pair<std::string, int>> together;
};

/// How it was decided whether chains of layers are one kernel each.
struct CascadeChoice {
  std::string why;      ///< one line; empty: there are no such chains
  bool judged = false;  ///< the source of the schedules said so
  int possible = 0;     ///< chains that can be, tensors between their layers being large
  int joined = 0;       ///< chains that are
  /// Hash and count of the kernels without; empty unless either way can be.
  std::vector<std::pair<std::string, int>> apart;
};

/// Everything that runs when the model runs, before schedules and memory are chosen.
struct ModelSteps {
  /// The compiled graph; copies that outputs need are values at the end, and `outputs` names them.
  graph::Graph graph;
  std::vector<ModelKernel> kernels;  ///< by first use
  std::vector<ModelStep> steps;      ///< topological
  std::vector<ValueAlias> aliases;   ///< by value
  std::vector<int> output_of;  ///< by value: number of the model's output it is written to, or -1
  /// How many images a run computes one after the other. Above 1 all of this is for one image, and
  /// a run repeats the steps for each image's part of the inputs and outputs.
  int64_t images = 1;
  BatchChoice batch;
  CascadeChoice cascades;
};

/// Turns groups into steps. Relabellings become aliases where the memory allows it (a part at a
/// multiple of 64 bytes of memory that is ours), copies elsewhere. Every output of the model gets a
/// value that a step writes, so an output that is an input, a constant, or another output again is
/// copied. Steps whose results have no elements are left out. Errors are those of BuildWorkload.
absl::StatusOr<ModelSteps> MakeSteps(graph::Graph graph, const std::vector<graph::Group>& groups);

/// Where the elements of a value lie in memory that is not part of another value's: element [i, j,
/// ...] at begin_bytes + (offset + i * strides[0] + j * strides[1] + ...) * element size.
struct ValueView {
  graph::ValueId root = graph::kNoValue;
  int64_t begin_bytes = 0;  ///< multiple of 64; 0 in a model's output, whose middle has no buffer
  int64_t offset = 0;       ///< elements
  std::vector<int64_t> strides;  ///< elements, by dimension; empty: dense

  bool IsWholeBuffer() const { return offset == 0 && strides.empty(); }
};
ValueView ViewOf(const ModelSteps& model, graph::ValueId value);

/// How a step's kernel must address its values; empty when all are dense.
schedule::Binding BindingOf(const ModelSteps& model, const ModelStep& step);

/// A kernel of this Workload, dense, used by no step yet.
ModelKernel MakeKernel(ir::Workload workload, std::string name);

/// A Workload that copies a value (a constant: from the constants).
ir::Workload CopyWorkload(const graph::Value& value);

/// A new value of the same type and name, in memory of its own.
graph::ValueId AddValueLike(ModelSteps& model, graph::ValueId value);

}  // namespace hone::compiler
