#pragma once

#include <cstdint>
#include <vector>

#include "ir/target.h"
#include "ir/workload.h"
#include "schedule/access.h"
#include "schedule/cpu/rules.h"

// What a register tile reads again and again, laid out in panels along the vector axis.
namespace hone::schedule {

/// Whether what the load moves through along vector axis `v` (of so many elements) is to be copied
/// into panels.
bool NeedsPacking(const ir::Workload& w, const Access& a, int v, int64_t extent);

/// A sum of products of two loaded bytes, widened to i32, or of two of bf16, widened to f32, where
/// the target multiplies them so in vectors.
bool IsSumOfNarrowProducts(const ir::Stage& stage, const ir::Target& target);

/// Whether factors lie as a product of several terms at a time wants them: innermost terms side by
/// side in the factor that all lanes share, and free to be laid out so in panels of the other.
bool SuitsDots(const ir::Stage& stage, const std::vector<Access>& accesses, const TileForm& form);

/// Numbers along the innermost reduce axis that one instruction multiplies and adds up: four of u8
/// and s8 with VNNI, two of bf16 where the Target has that, two of any bytes, which every Target
/// widens to 16 bits. They must lie side by side in the factor that all lanes share; panels have
/// them so. 1: none.
int64_t DotOf(const ir::Workload& w, const ir::Stage& stage, const std::vector<Access>& accesses,
              const TileForm& form, const ir::Target& target);

/// Copies what all lanes share of pairs as 16 bits, where the form says so.
void WidenShared(TraceWriter& w, const TileForm& form, const ir::Target& target);

/// Fetches the next of the `panels` (name of the Stage that packs them) while one is worked on:
/// each tile of rows fetches its share. Call it when the loops stand.
void FetchPanelsAhead(TraceWriter& w, const TileForm& form, const TileChoice& choice,
                      const std::string& panels);

/// Maps that only prepare what a dot product's copies hold: PackPanels and WidenShared compute them
/// there, where nothing was done to them before.
std::vector<int> PreparedInPanels(const TraceWriter& w, const TileForm& form);

}  // namespace hone::schedule
