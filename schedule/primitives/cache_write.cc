#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

// sN = cache_write(STAGE, register|memory, at=LOOP[, through=shared]): inside LOOP (one of STAGE's
// own) the reduction accumulates in a tile; the tile starts from the combiner's identity, or from
// STAGE's buffer when LOOP lies within reduce loops and this is not their first step, and is stored
// back at the end of LOOP's body. sN names the tile; a tuple reduction has one for each of its
// results. A tile in registers at a loop that is thread.x may be stored through shared memory, so
// that neighbouring threads store what lies together (nest_through.cc).
absl::Status ApplyCacheWrite(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(2, 2, {"at", "through"}));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  auto loop = args.Named("at");
  if (!loop) return Illegal("needs at=LOOP");
  HONE_ASSIGN_OR_RETURN(Schedule::LoopRef at, schedule.Loop(*loop));
  const ir::Stage& stage = schedule.workload.stages[id];
  if (at.stage != id) return Illegal(fmt::format("{} is not a loop of {}", *loop, stage.name));
  if (stage.combiner == ir::Combiner::kNone)
    return Illegal(fmt::format("{} does not reduce", stage.name));
  StageSchedule& s = schedule.stages[id];
  if (s.cache_write) return Illegal(fmt::format("{} has a tile already", stage.name));
  CacheWrite tile;
  if (args.Text(1) == "memory")
    tile.storage = Storage::kMemory;
  else if (args.Text(1) != "register")
    return Illegal(fmt::format("no storage {}; there are: register memory", args.Text(1)));
  if (const auto through = args.Named("through")) {
    if (*through != "shared" || tile.storage != Storage::kRegister)
      return Illegal("a tile in registers is stored through shared memory, no other");
    tile.through = true;
  }
  HONE_ASSIGN_OR_RETURN(tile.name, TakeStageName(schedule, instruction));
  tile.loop = at.loop;
  s.cache_write = std::move(tile);
  return absl::OkStatus();
}

}  // namespace hone::schedule
