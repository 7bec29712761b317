#pragma once

#include <memory>
#include <vector>

#include "ir/accuracy_class.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/cpu/cpu_rule.h"
#include "schedule/kind_sketches.h"

// The rules for CPUs: a line each here, in which a rule is named, and in CpuRules.
namespace hone::schedule {

const CpuRule& CascadeSketches();
const CpuRule& KeptSketches();
const CpuRule& BitmaskSketches();
const CpuRule& TileProductSketches();
const CpuRule& FlatRowsSketches();
const CpuRule& DirectSketches();
const CpuRule& WinogradSketches();
const CpuRule& RowsSketches();
const CpuRule& MapSketches();
const CpuRule& ScanSketches();
const CpuRule& AttentionSketches();
const CpuRule& CumulatedSketches();

/// All of them, in the order in which a Space holds their Sketches.
const std::vector<const CpuRule*>& CpuRules();

/// Those of all rules; the default is of the first that has one.
const KindSketches& CpuSketches();

}  // namespace hone::schedule
