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
    case LoopKind::kBlockZ: return &Launch::grid_z;
    case LoopKind::kThreadX: return &Launch::block_x;
    case LoopKind::kThreadY: return &Launch::block_y;
    default: return nullptr;
  }
}

int64_t SharedBytesOf(const LoopNest& nest, const Phase& phase) {
  int64_t bytes = 0;
  for (const int id : BuffersOf(phase.body)) {
    const Buffer& buffer = nest.buffers[static_cast<size_t>(id)];
    if (buffer.scope != Scope::kShared) continue;
    const int64_t own = buffer.elements * SizeOf(buffer.dtype);
    bytes += (own + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  }
  return bytes;
}

Launch LaunchOf(const LoopNest& nest, const Phase& phase) {
  Launch launch;
  Collect(phase.body, &launch);
  const int64_t shared = SharedBytesOf(nest, phase);
  if (shared > kMostDeclaredBytes) launch.shared_bytes = shared;
  return launch;
}

}  // namespace hone::ir
