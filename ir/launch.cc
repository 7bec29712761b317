#include "ir/launch.h"

#include <algorithm>

namespace hone::ir {
namespace {

void Collect(const Stmt& stmt, Launch* launch) {
  if (stmt->kind == StmtKind::kFor) {
    int64_t Launch::*const axis = AxisOf(stmt->loop);
    if (axis != nullptr) launch->*axis = std::max(launch->*axis, stmt->extent);
  }
  for (const Stmt& inner : stmt->body) Collect(inner, launch);
}

}  // namespace

int64_t Launch::*AxisOf(LoopKind kind) {
  switch (kind) {
    case LoopKind::kParallel:
    case LoopKind::kBlockX: return &Launch::grid_x;
    case LoopKind::kBlockY: return &Launch::grid_y;
    case LoopKind::kThreadX: return &Launch::block_x;
    case LoopKind::kThreadY: return &Launch::block_y;
    default: return nullptr;
  }
}

Launch LaunchOf(const Phase& phase) {
  Launch launch;
  Collect(phase.body, &launch);
  return launch;
}

}  // namespace hone::ir
