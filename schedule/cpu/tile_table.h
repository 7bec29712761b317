#pragma once

#include <cstdint>

#include "ir/target.h"
#include "schedule/cpu/rules.h"
#include "schedule/sketch.h"

namespace hone::schedule {

/// rows × vectors of a register tile over so many rows: those that fit the registers and make
/// different tilings. The table "tile" of the columns rows and vectors; never empty.
DecisionTable TileTable(int64_t rows_total, const TileForm& form, const ir::Target& target,
                        bool contraction);
/// 0 (whole) and divisor-like blocks of a long reduction: "reduce", of the column reduce_block.
DecisionTable BlockTable(int64_t extent);

/// Whether multiply-adds take a broadcast from memory (AVX-512); else it is an instruction and a
/// register of its own.
bool TakesBroadcastsFromMemory(const ir::Target& target);

/// Rows of the tile beyond which what they read of the broadcast operand shares a set of the first
/// cache: a line is gone before its next element is wanted.
int64_t RowsWithinASet(const ir::Workload& workload, const TileForm& form,
                       const ir::Target& target);

}  // namespace hone::schedule
