#pragma once

#include "absl/status/statusor.h"

#include "graph/evaluator.h"
#include "graph/graph.h"
#include "ir/target.h"

// Every pass over the graph: one file each in this folder, one test each in tests/graph/passes. A
// pass keeps what the graph computes (the names and types of its inputs and outputs too), leaves
// the nodes in topological order, and gives the number of changes it made; 0 means that it left the
// graph as it was. Errors are those of the Evaluator or of shape inference. The order in which they
// run is in graph/pipeline.cc.
namespace hone::graph {

struct PassContext {
  Evaluator& evaluator;
  const ir::Target& target;
};

/// One form for one thing: no reshape of a reshape, transpose of a transpose, cast that changes
/// nothing, slice of everything, expansion that broadcasting does anyway; a transpose that moves
/// only axes of extent 1 is a reshape; a transposed operand of a matrix product is an attribute of
/// it.
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

/// Computes nodes all of whose operands are known, by the Evaluator; a node that would make a large
/// constant out of a small one (Expand) stays.
///
///   %2 = Binary(%c0, %c1) {fn=add}            %2 is a constant
absl::StatusOr<int> FoldConstants(Graph& graph, const PassContext& context);

/// One node for equal nodes with equal operands, one constant for equal constants.
///
///   %2 = Unary(%0) {fn=exp}                   %2 = Unary(%0) {fn=exp}
///   %3 = Unary(%0) {fn=exp}                   %4 = Binary(%2, %2) {fn=add}
///   %4 = Binary(%2, %3) {fn=add}
absl::StatusOr<int> MergeCommon(Graph& graph, const PassContext& context);

/// Algebraic rules that keep results to the last bit or nearly: x+0, x·1, pow(x, 2), x/4 = x·0.25,
/// -1·x, max of max, 1/√x, 1/(1 + exp(-x)) = sigmoid(x), not(not(x)), select on a constant, one
/// scale for both factors of a matrix product.
///
///   %2 = Binary(%0, %c) {fn=pow}  c = 2       %2 = Binary(%0, %0) {fn=mul}
absl::StatusOr<int> SimplifyArithmetic(Graph& graph, const PassContext& context);

/// Bytes that are dequantised, moved (transposed, gathered, pooled) and quantised by the same scale
/// and zero point again are moved as bytes, and rows of a dequantised table are gathered before.
///
///   %2 = Binary(%q, %s) {fn=mul}              %5 = Transpose(%x) {perm=[1,0]}
///   %3 = Transpose(%2) {perm=[1,0]}           (%q is %x as f32)
///   %5 = Cast(round(%3 / %s)) {to=u8}
absl::StatusOr<int> MoveBytes(Graph& graph, const PassContext& context);

/// What is computed of one byte alone, and becomes a byte again, is read from a table of 256 where
/// that is quicker: activations between two quantised layers.
///
///   %2 = Cast(round(erf(f32(%0) · s) / t))    %2 = Lookup(%0, %c)
absl::StatusOr<int> TabulateBytes(Graph& graph, const PassContext& context);

/// Products of dequantised operands (DequantizeLinear around MatMul, Gemm, Conv) become products of
/// bytes, their sums scaled. Scales and zero points of the graph become tensors along the channels,
/// so that equal layers are equal Workloads, and quantising multiplies by 1/scale. Channels of a
/// convolution are filled up with zeros to a multiple of four; depthwise ones read bytes and sum
/// floats. Weights with a zero point, scales of
/// rows and matrix products of no multiple of four terms keep their product of floats.
///
///   %2 = Binary(%q, %s) {fn=mul}              %3 = MatMulInteger(%q', %w')
///   %3 = MatMul(%2, %w)                       %4 = Binary(%3, %f) {fn=mul}
absl::StatusOr<int> RecogniseQuantised(Graph& graph, const PassContext& context);

/// Products of a few rows with large known weights that are dequantised, per column or in blocks of
/// terms, read the weights as they are stored; what four bits hold takes four.
///
///   %2 = Binary(%q, %s) {fn=mul}              %3 = MatMulNarrow(%0, %w', %s') {bits=4 zero=8}
///   %3 = MatMul(%0, %2)
absl::StatusOr<int> NarrowWeights(Graph& graph, const PassContext& context);

/// Finds layer norm, RMS norm and softmax written as primitives, and softmax whose NaN become
/// zeros.
///
///   %1 = Reduce(%0) {fn=mean}                 %7 = Normalise(%0, %s, %b) {kind=layer}
///   %2 = Binary(%0, %1) {fn=sub}
///   %3 = Binary(%2, %2) {fn=mul}
///   %4 = Reduce(%3) {fn=mean}
///   %5 = Unary(%4 + eps) {fn=sqrt}
///   %6 = Binary(%2, %5) {fn=div}
///   %7 = %6 * %s + %b
absl::StatusOr<int> RecogniseRows(Graph& graph, const PassContext& context);

/// A normalisation by groups of channels, written as one of the rows of a reshaped value, becomes
/// a GroupNorm of the value itself, which knows positions and channels; a scale and a bias per
/// channel that follow become its own.
///
///   %1 = Reshape(%0) {shape=[1,8,1024]}
///   %2 = Normalise(%1, %s, %b) {axes=[2]}           %4 = GroupNorm(%0, %s', %b') {groups=8}
///   %3 = Reshape(%2) {shape=[1,32,16,16]}
///   %4 = %3 * %t + %c
absl::StatusOr<int> RecogniseGroupNorm(Graph& graph, const PassContext& context);

/// GELU, the erf form and the tanh form, however an exporter ordered and associated it.
///
///   %2 = Binary(%0, %c) {fn=div}  c = √2      %6 = Activation(%0) {fn=gelu}
///   %3 = Unary(%2) {fn=erf}
///   %4 = Binary(%3, %c1) {fn=add}
///   %5 = Binary(%0, %4) {fn=mul}
///   %6 = Binary(%5, %ch) {fn=mul}
absl::StatusOr<int> RecogniseGelu(Graph& graph, const PassContext& context);

/// x · sigmoid(alpha · x), x / (1 + exp(-alpha · x)) and x · (1 + tanh(x / 2)) / 2.
///
///   %1 = Unary(%0) {fn=sigmoid}               %2 = Activation(%0) {alpha=1 fn=silu}
///   %2 = Binary(%0, %1) {fn=mul}
absl::StatusOr<int> RecogniseSilu(Graph& graph, const PassContext& context);

/// Hard sigmoid and hard swish: clamped lines, and x times one.
///
///   %1 = Binary(%0, %c3) {fn=add}             %5 = Activation(%0) {fn=hard_swish}
///   %2 = Binary(%1, %c0) {fn=max}
///   %3 = Binary(%2, %c6) {fn=min}
///   %4 = Binary(%0, %3) {fn=mul}
///   %5 = Binary(%4, %c6) {fn=div}
absl::StatusOr<int> RecogniseHardSigmoid(Graph& graph, const PassContext& context);

/// Known masks under which row i of the scores sees columns up to i + offset become a comparison of
/// indices: selected by a bool, or added to what a softmax is of, 0 where it is seen. Hidden scores
/// must be so low that nothing is left of them (-inf, the lowest float), and every row sees one.
///
///   %2 = Binary(%0, %mask) {fn=add}           %2 = Causal(%0, %lowest) {offset=0}
///   %3 = Softmax(%2) {axis=3}                 %3 = Softmax(%2) {axis=3}
absl::StatusOr<int> RecogniseCausal(Graph& graph, const PassContext& context);

/// Marks the second product of an attention in f32, softmax(scale · Q Kᵀ + mask) V, over as many
/// keys and rows as the Target's group limits say, so that grouping puts both products and the
/// softmax between them in one group.
///
///   %2 = MatMul(%0, %1) {transpose_b=1}       (the same, and)
///   %3 = Softmax(%2) {axis=3}                 %5 = MatMul(%3, %4) {attention=1}
///   %5 = MatMul(%3, %4)
absl::StatusOr<int> RecogniseAttention(Graph& graph, const PassContext& context);

/// Matrix products of one value with several constant weights become one, and slices of its result
/// (QKV).
///
///   %2 = MatMul(%0, %w1)                      %4 = MatMul(%0, %w)
///   %3 = MatMul(%0, %w2)                      %2 = Slice(%4), %3 = Slice(%4)
absl::StatusOr<int> MergeSiblings(Graph& graph, const PassContext& context);

/// Equal parts of the last axis that are all reshaped and transposed alike: the whole is, once,
/// with the parts along the first axis, so that each part is a piece of one buffer (QKV split into
/// heads).
///
///   %1 = Slice(%0), %2 = Slice(%0)            %7 = Transpose(Reshape(%0)) {perm=[2,0,3,1,4]}
///   %3 = Transpose(Reshape(%1))               %3 = Reshape(Slice(%7))
///   %4 = Transpose(Reshape(%2))               %4 = Reshape(Slice(%7))
absl::StatusOr<int> HoistSlices(Graph& graph, const PassContext& context);

/// Gives every reader of a relabelling its own: a reshape costs nothing, and grouping can put each
/// with its reader.
///
///   %1 = Reshape(%0)                          %1 = Reshape(%0), %4 = Reshape(%0)
///   %2 = f(%1), %3 = g(%1)                    %2 = f(%1), %3 = g(%4)
absl::StatusOr<int> SplitViews(Graph& graph, const PassContext& context);

/// A convolution does itself what a Pad with zeros did for it, so that each of several readers has
/// its own choice of how to pad.
///
///   %2 = Pad(%0) {begin=[0,0,1,1] …}          %3 = Conv(%0, %1) {pads=[1,1,1,1]}
///   %3 = Conv(%2, %1) {pads=[0,0,0,0]}
absl::StatusOr<int> FoldPads(Graph& graph, const PassContext& context);

/// Makes scale and shift per channel part of the convolution or matrix product before them: batch
/// norms, and multiplications and additions by constants. Constants are computed in double and
/// rounded once. A batch norm that stands elsewhere becomes one multiplication and one addition.
///
///   %4 = Conv(%0, %1)                         %9 = Conv(%0, %7, %8)
///   %5 = BatchNorm(%4, %s, %b, %m, %v)
absl::StatusOr<int> FoldBatchNorm(Graph& graph, const PassContext& context);

/// For pruned models: removes rows, channels and attention heads between products that no reader
/// has weights for, or that are zero because the product that makes them has no weights for them.
/// Follows them through residual sums, gates, depthwise convolutions and softmax. Nodes that then
/// feed nothing are removed too.
///
///   %1 = MatMul(%0, %a) [8,12]                %1 = MatMul(%0, %c) [8,10]
///   %2 = Unary(%1) {fn=relu}                  %2 = Unary(%1) {fn=relu}
///   %3 = MatMul(%2, %b) [12,6]                %3 = MatMul(%2, %d) [10,6]
absl::StatusOr<int> DropZeros(Graph& graph, const PassContext& context);

/// Channels last: convolutions, pools and everything element-wise between them work on NHWC;
/// transposes stand at the borders of such regions only. Reductions, Concat, Pad, Slice and Resize
/// get their axes remapped.
///
///   %2 = Conv(%0, %1) {layout=nchw}           %4 = Transpose(%0) {perm=[0,2,3,1]}
///   %3 = Unary(%2) {fn=relu}                  %5 = Conv(%4, %1) {layout=nhwc}
///                                             %6 = Unary(%5) {fn=relu}
///                                             %3 = Transpose(%6) {perm=[0,3,1,2]}
absl::StatusOr<int> ChooseLayout(Graph& graph, const PassContext& context);

/// Where the graph's precision is below f32: matrix products and convolutions of f32 read operands
/// rounded to it and add up in f32. An operand is rounded where it is computed, before what only
/// moves its elements. Products whose terms do not come in pairs (of weights: odd; or not side by
/// side), with few columns, few rows of computed operands or few channels a group stay as they are;
/// so does everything else. In f16 only large weights of matrix products are rounded; in bf16 too,
/// of at most 8 rows, where the target has no products of bf16 (ir::Multiplies).
///
///   %2 = MatMul(%0, %c)                       %3 = Cast(%0) {to=bf16}
///                                             %2 = MatMul(%3, %d) {to=f32}
absl::StatusOr<int> NarrowProducts(Graph& graph, const PassContext& context);

/// For a device on which no routine of the runtime runs: TopK and Scatter as Stages. An index that
/// lies outside changes nothing there, where a routine refuses it.
///
///   %2, %3 = TopK(%0) {k=4}                   %2, %3 = TopKStages(%0) {k=4}
absl::StatusOr<int> ExpressExterns(Graph& graph, const PassContext& context);

}  // namespace hone::graph
