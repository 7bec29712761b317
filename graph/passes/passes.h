#pragma once

#include "absl/status/statusor.h"
#include "graph/evaluator.h"
#include "graph/graph.h"
#include "ir/target.h"

// Every pass over the graph: one file each in this folder, one test each in tests/graph/passes. A pass keeps what the graph
// computes (the names and types of its inputs and outputs too), leaves the nodes in topological order, and gives the
// number of changes it made; 0 means that it left the graph as it was. Errors are those of the Evaluator or of shape inference.
// The order in which they run is in graph/pipeline.cc.
namespace hone::graph {

struct PassContext {
  Evaluator& evaluator;
  const ir::Target& target;
};

/// One form for one thing: no reshape of a reshape, transpose of a transpose, cast that changes nothing, slice of
/// everything, expansion that broadcasting does anyway; a transpose that moves only axes of extent 1 is a reshape; a
/// transposed operand of a matrix product is an attribute of it.
///
///   %2 = Transpose(%0) {perm=[0,2,1]}         %3 = MatMul(%1, %0) {transpose_b=1}
///   %3 = MatMul(%1, %2)
absl::StatusOr<int> Canonicalise(Graph& graph, const PassContext& context);

/// Drops nodes whose results nobody reads.
///
///   %2 = Unary(%0) {fn=exp}                   %3 = Unary(%0) {fn=neg}
///   %3 = Unary(%0) {fn=neg}                   output %3
///   output %3
absl::StatusOr<int> RemoveDeadCode(Graph& graph, const PassContext& context);

/// Computes nodes all of whose operands are known, by the Evaluator; a node that would make a large constant out of a
/// small one (Expand) stays.
///
///   %2 = Binary(%c0, %c1) {fn=add}            %2 is a constant
absl::StatusOr<int> FoldConstants(Graph& graph, const PassContext& context);

/// Makes scale and shift per channel part of the convolution or matrix product before them: batch norms, and
/// multiplications and additions by constants. Constants are computed in double and rounded once. A batch norm that
/// stands elsewhere becomes one multiplication and one addition.
///
///   %4 = Conv(%0, %1)                         %9 = Conv(%0, %7, %8)
///   %5 = BatchNorm(%4, %s, %b, %m, %v)
absl::StatusOr<int> FoldBatchNorm(Graph& graph, const PassContext& context);

/// Channels last: convolutions, pools and everything element-wise between them work on NHWC; transposes stand at the
/// borders of such regions only. Reductions, Concat, Pad, Slice and Resize get their axes remapped.
///
///   %2 = Conv(%0, %1) {layout=nchw}           %4 = Transpose(%0) {perm=[0,2,3,1]}
///   %3 = Unary(%2) {fn=relu}                  %5 = Conv(%4, %1) {layout=nhwc}
///                                             %6 = Unary(%5) {fn=relu}
///                                             %3 = Transpose(%6) {perm=[0,3,1,2]}
absl::StatusOr<int> ChooseLayout(Graph& graph, const PassContext& context);

}  // namespace hone::graph
