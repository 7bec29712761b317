#pragma once

#include <memory>
#include <vector>

#include "ir/accuracy_class.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/sketches/cpu_rule.h"

// The rules for CPUs: a line each here, in which a rule is named, and in CpuRules.
namespace hone::schedule {

const CpuRule& DirectSketches();
const CpuRule& WinogradSketches();
const CpuRule& RowsSketches();
const CpuRule& MapSketches();
const CpuRule& ScanSketches();
const CpuRule& AttentionSketches();

/// All of them, in the order in which a Space holds their Sketches.
const std::vector<const CpuRule*>& CpuRules();

/// Every Sketch of every rule: ids count on the order.
std::vector<Sketch> CpuSketches(const ir::Workload& workload, const ir::Target& target,
                                ir::AccuracyClass accuracy);
/// The first Sketch that has a default.
Sketch DefaultCpuSketch(const ir::Workload& workload, const ir::Target& target);

}  // namespace hone::schedule
