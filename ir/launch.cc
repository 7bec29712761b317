#include "ir/launch.h"

#include <algorithm>
#include <set>

namespace hone::ir {
namespace {

constexpr int64_t kSharedAlignment = 64;

void Collect(const Stmt& stmt, Launch* launch) {
  if (stmt->kind == StmtKind::kFor) {
    int64_t Launch::*const axis = AxisOf(stmt->loop);
    if (axis != nullptr) launch->*axis = std::max(launch->*axis, stmt->extent);
  }
  for (const Stmt& inner : stmt->body) Collect(inner, launch);
}

void CollectMaps(const Stmt& stmt, std::set<int>* maps) {
  if (stmt->map >= 0) maps->insert(stmt->map);
  for (const Stmt& inner : stmt->body) CollectMaps(inner, maps);
}

}  // namespace

std::vector<int> MapsOf(const Phase& phase) {
  std::set<int> maps;
  CollectMaps(phase.body, &maps);
  return {maps.begin(), maps.end()};
}

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
    bytes = AlignedTo(bytes, SharedAlignmentOf(buffer)) + buffer.elements * SizeOf(buffer.dtype);
  }
  return AlignedTo(bytes, kSharedAlignment);
}

int64_t SharedAlignmentOf(const Buffer& buffer) {
  return buffer.swizzle == Swizzle::kNone ? kSharedAlignment : 1024;
}

int64_t AlignedTo(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

Launch LaunchOf(const LoopNest& nest, const Phase& phase) {
  Launch launch;
  Collect(phase.body, &launch);
  const int64_t shared = SharedBytesOf(nest, phase);
  if (shared > kMostDeclaredBytes) launch.shared_bytes = shared;
  for (const int map : MapsOf(phase))
    launch.descriptors.push_back(nest.maps[static_cast<size_t>(map)]);
  return launch;
}

}  // namespace hone::ir
