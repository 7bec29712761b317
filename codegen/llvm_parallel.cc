#include <algorithm>

#include "fmt/core.h"

#include "codegen/llvm_emitter.h"
#include "ir/launch.h"

// Loops of which this call runs a part: a thread's iterations, or one of a grid.
namespace hone::codegen {

using ir::LoopKind;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtNode;

namespace {

bool HasSync(const Stmt& stmt) {
  return stmt->kind == StmtKind::kSync ||
         std::any_of(stmt->body.begin(), stmt->body.end(), HasSync);
}

/// Iterations of the parallel loops before this one, and of all of them.
struct Place {
  int64_t before = 0, all = 0;
};

void FindPlace(const StmtNode& body, const StmtNode& loop, Place* place) {
  if (body.kind == StmtKind::kFor && body.loop == LoopKind::kParallel) {
    if (&body == &loop) place->before = place->all;
    place->all += body.extent;
    return;
  }
  for (const Stmt& inner : body.body) FindPlace(*inner, loop, place);
}

}  // namespace

// Parallel loops beside each other number their iterations on: what of the part lies in this one.
void FunctionEmitter::EmitPart(llvm::Value* begin, llvm::Value* end, const StmtNode& node) {
  Place place;
  FindPlace(*phase_.body, node, &place);
  if (place.all == node.extent) return EmitLoop(begin, end, node);
  const auto within = [&](llvm::Value* index) {
    const auto number = [&](int64_t n) { return builder_.getInt64(static_cast<uint64_t>(n)); };
    llvm::Value* own = builder_.CreateSub(index, number(place.before));
    own = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, own, number(0));
    return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, own, number(node.extent));
  };
  llvm::Value* first = within(begin);
  llvm::Value* last = within(end);
  Branch(builder_.CreateICmpSLT(first, last), [&] { EmitLoop(first, last, node); });
}

// The machine runs its iterations. Siblings may have fewer than are launched.
bool FunctionEmitter::EmitLaunched(const StmtNode& node) {
  llvm::Value* index = nullptr;
  {
    llvm::IRBuilder<>::InsertPointGuard restore(builder_);
    builder_.SetInsertPoint(frames_[0].marker);
    index = function_->LaunchedIndex(node.loop);
  }
  if (index == nullptr) return false;
  const int64_t launched = launch_.*ir::AxisOf(node.loop);
  const auto emit_body = [&] { EmitBody(node); };
  const Affine var = index_.NewVariable(0, {0, node.extent - 1});
  SetAtomValue(var, index);
  index_.Bind(node.var, var);
  if (node.loop == LoopKind::kThreadX) thread_x_ = node.var;
  if (node.loop == LoopKind::kThreadY) thread_y_ = node.var;
  if (node.extent == launched) {
    emit_body();
    return true;
  }
  const bool threads = node.loop == LoopKind::kThreadX || node.loop == LoopKind::kThreadY;
  if (threads && std::any_of(node.body.begin(), node.body.end(), HasSync)) {
    Fail(fmt::format("only {} of {} threads would reach a barrier", node.extent, launched));
    return true;
  }
  llvm::Value* extent = builder_.getInt64(static_cast<uint64_t>(node.extent));
  Branch(builder_.CreateICmpULT(index, extent), emit_body);
  return true;
}

}  // namespace hone::codegen
