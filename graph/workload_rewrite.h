#pragma once

#include "ir/workload.h"

// Changes to the Stages of a fused subgraph that keep what it computes: relabelling Stages
// disappear into their readers, and what follows the anchor is moved onto the anchor's axes.
// Results are not canonical: the caller ends with ir::Canonicalise. All functions keep tensor ids.
namespace hone::graph {

/// Replaces every load of the result of a map Stage by its body at the load's indices and drops the
/// Stage. The Stage has no reduce axes, no store map, no scan and one body, and its result is no
/// output.
void InlineStage(ir::Workload& workload, int stage);

/// Inlines every Stage that only moves elements: its body is one load at quasi-affine indices.
void InlineMoves(ir::Workload& workload);

/// Moves maps that only a reshape reads, for reductions alone, onto the reshape's axes, unless they
/// follow a reduction or scan: a product or a convolution whose weights are computed then reads one
/// axis for each of its own, as schedules that pack an operand ask for.
///
///   s0: [4,8,3] = x0[i0, 0, i2] * x1[0, i1, i2]
///   s1: [32,3] = s0[i0 // 8, i0 % 8, i1]     s1: [32,3] = x0[i0 // 8, 0, i1] * x1[0, i0 % 8, i1]
void MoveOntoReshapes(ir::Workload& workload);

/// Inlines every map Stage whose result is no output.
void InlineMaps(ir::Workload& workload);

/// Moves the maps that follow a reduction or scan onto its axes: a map whose axes are a bijection
/// of what it reads iterates over what it reads, and an output among them gets a store map.
///
///   s0: [8,16] = sum[r0:4] (…)              s0: [8,16] = sum[r0:4] (…)
///   s1: [16,8] output = exp(s0[i1, i0])     s1: [16,8] output store[i1, i0] = exp(s0[i0, i1])
void MoveOntoAnchorAxes(ir::Workload& workload);

/// Writes the same thing the same way: reduce axes of extent 1 are dropped (one stays), indices are
/// as short as extents allow, and a load that reads along all axes says so, [i0, i1], also where an
/// extent of 1 would allow a 0.
void Tidy(ir::Workload& workload);

}  // namespace hone::graph
