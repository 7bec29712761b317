#pragma once

#include <span>
#include <vector>

#include "graph/op.h"

// Every family of operators and its table. A new family is a file in this folder, a function here
// and a line in AllFamilies (families.cc).
namespace hone::graph::ops {

std::span<const OpDefinition> ElementwiseOps();  // Unary, Binary, Select, Cast, Activation
std::span<const OpDefinition> ShapeOps();        // Transpose, Reshape, Expand, Tile
std::span<const OpDefinition> SliceOps();        // Slice, Pad
std::span<const OpDefinition> ConcatOps();
std::span<const OpDefinition> GatherOps();  // Gather, GatherElements, GatherND, Lookup
std::span<const OpDefinition> IndexOps();   // Trilu, Causal, ReverseSequence, TensorScatter
std::span<const OpDefinition> ResizeOps();
std::span<const OpDefinition> ConvOps();  // Conv, ConvInteger
std::span<const OpDefinition> ConvTransposeOps();
std::span<const OpDefinition> DeformConvOps();  // DeformConv, Col2Im
std::span<const OpDefinition> MatMulOps();      // MatMul, MatMulInteger, Einsum
std::span<const OpDefinition> MatMulNarrowOps();
std::span<const OpDefinition> PoolOps();
std::span<const OpDefinition> ReduceOps();  // Reduce, ArgReduce
std::span<const OpDefinition> SoftmaxOps();
std::span<const OpDefinition> GroupNormOps();
std::span<const OpDefinition> NormaliseOps();  // Normalise, BatchNorm, LRN
std::span<const OpDefinition> CumSumOps();
std::span<const OpDefinition> RecurrentOps();    // LSTM, GRU, RNN
std::span<const OpDefinition> SamplingOps();     // GridSample, RoiAlign
std::span<const OpDefinition> ExternOps();       // TopK, Scatter*
std::span<const OpDefinition> ExternStageOps();  // the same as Stages

std::vector<std::span<const OpDefinition>> AllFamilies();

}  // namespace hone::graph::ops
