#include "fmt/core.h"

#include "codegen/llvm_emitter.h"
#include "ir/async_copy.h"
#include "ir/box_copy.h"
#include "ir/mma.h"
#include "ir/wgmma.h"

// What four warps multiply together (ir/wgmma.h): the machine reads the factors where they lie in
// swizzled shared memory, of which it is told where they begin.
namespace hone::codegen {

namespace {

/// Numbers that a copy's loops store.
int64_t TileElements(const ir::Stmt& stmt, int buffer) {
  if (stmt->kind == ir::StmtKind::kStore) return stmt->buffers[0] == buffer ? 1 : 0;
  int64_t elements = 0;
  for (const ir::Stmt& inner : stmt->body) elements += TileElements(inner, buffer);
  return stmt->kind == ir::StmtKind::kFor ? elements * stmt->extent : elements;
}

}  // namespace

// Pieces of 16 bytes are exchanged within 128, by the number of these in each 1,024: three bits of
// an address that are changed by the three above. The buffer begins at a multiple of 1,024.
llvm::Value* FunctionEmitter::SwizzledPointer(int buffer, const Affine& index) {
  constexpr uint64_t kPieces = 0x70, kRowsAbove = 3;
  const int64_t size = ir::SizeOf(Of(buffer).dtype), unit = 1024 / size;
  Affine whole, within(index.constant % unit);
  whole.constant = index.constant - within.constant;
  for (const Term& term : index.terms)
    (term.coefficient % unit == 0 ? whole : within).terms.push_back(term);
  llvm::Value* const at = MaterialiseScalar(Scale(within, size));
  llvm::Value* const rows = builder_.CreateAnd(
      builder_.CreateLShr(at, builder_.getInt64(kRowsAbove)), builder_.getInt64(kPieces));
  return builder_.CreateGEP(builder_.getInt8Ty(), PlainPointer(buffer, whole),
                            builder_.CreateXor(at, rows));
}

// The number of a warp, read from one of its lanes, so that descriptors are known to be the same
// for all of them.
void FunctionEmitter::BindWarps() {
  if (!warp_) {
    const Affine own = index_.Decompose(ir::Var(thread_y_));
    if (own.IsConst()) {
      warp_ = own;
    } else {
      llvm::IRBuilder<>::InsertPointGuard restore(builder_);
      builder_.SetInsertPoint(frames_[0].marker);
      llvm::Value* const uniform = function_->Uniform(MaterialiseScalar(own));
      warp_ = index_.NewVariable(0, index_.Bounds(own));
      SetAtomValue(*warp_, uniform);
    }
  }
  index_.Bind(thread_y_, *warp_);
}

PhaseFunction::GroupFactor FunctionEmitter::FactorOf(const ir::WgmmaLoop& loop,
                                                     const ir::Expr& load) {
  const auto at = [&](int var, int64_t value) {
    for (const int v : {loop.row, loop.eight, loop.column, loop.term})
      index_.Bind(v, Affine(v == var ? value : 0));
    return index_.Decompose(load->args[0]);
  };
  const Affine begin = at(-1, 0);
  PhaseFunction::GroupFactor factor;
  const Affine next = at(loop.term, 1) - begin;
  factor.layout.by_term = next.IsConst() && next.constant == 1;
  for (int64_t term = 0; term < loop.terms; term += ir::kGroupTerms) {
    const Affine apart = at(loop.term, term) - begin;
    if (!apart.IsConst()) Fail("a wgmma whose terms lie at unknown distances");
    factor.terms.push_back(apart.constant * ir::SizeOf(load->dtype));
  }
  const bool columns = load == loop.second;
  if (!factor.layout.by_term && columns && loop.columns > ir::kSwizzledRow) {
    const Affine apart = at(loop.eight, ir::kSwizzledRow / ir::kMmaColumns) - begin;
    if (!apart.IsConst()) Fail("a wgmma whose columns lie at unknown distances");
    factor.layout.next_row = apart.constant;
  }
  constexpr int64_t kUnit = 16;
  const int64_t bytes = ir::SizeOf(load->dtype);
  Affine still(begin.constant), moving;
  for (const Term& term : begin.terms) {
    const bool moves = index_.atom(term.atom).depth > 0 && term.coefficient * bytes % kUnit == 0;
    (moves ? moving : still).terms.push_back(term);
  }
  for (Term& term : moving.terms) term.coefficient = term.coefficient * bytes / kUnit;
  factor.begin = PlainPointer(load->id, still);
  if (!moving.terms.empty()) factor.further = MaterialiseScalar(moving);
  return factor;
}

void FunctionEmitter::EmitWgmma(const ir::StmtNode& node) {
  const std::optional<ir::WgmmaLoop> loop = ir::FindWgmma(node);
  if (!loop) return Fail("a wgmma of another form");
  if (!function_->has_wgmma()) return Fail("a wgmma, which this machine does not have");
  if (mask_ != nullptr || vector_.lanes > 1 || branches_ > 0)
    return Fail("a wgmma inside a vector loop or a condition");
  if (launch_.block_x != ir::kMmaLanes || launch_.block_y % ir::kGroupWarps != 0 || thread_x_ < 0 ||
      thread_y_ < 0) {
    return Fail(
        fmt::format("a wgmma where {} by {} threads are", launch_.block_x, launch_.block_y));
  }
  for (const ir::Expr& load : {loop->first, loop->second}) {
    if (Of(load->id).scope != ir::Scope::kShared || Of(load->id).swizzle != ir::Swizzle::k128)
      return Fail("a wgmma of buffer '" + Of(load->id).name + "', which is not swizzled");
  }
  statement_values_.clear();
  const int sums = loop->store->buffers[0];
  std::vector<Affine> places;
  std::vector<llvm::Value*> values;
  for (int64_t e = 0; e < loop->columns / 2; ++e) {
    index_.Bind(loop->eight, Affine(e / 4));
    index_.Bind(loop->row, Affine(e / 2 % 2));
    index_.Bind(loop->column, Affine(e % 2));
    index_.Bind(loop->term, Affine(0));
    places.push_back(index_.Decompose(loop->store->index));
    values.push_back(Load(sums, places.back()).llvm);
  }
  const Affine lane = index_.Decompose(ir::Var(thread_x_));
  const Affine warp = index_.Decompose(ir::Var(thread_y_));
  BindWarps();
  // The first lane of the first of four warps.
  const Affine first_warp =
      index_.Decompose(ir::FloorDiv(ir::Var(thread_y_), ir::kGroupWarps) * ir::kGroupWarps);
  index_.Bind(thread_x_, Affine(0));
  index_.Bind(thread_y_, first_warp);
  const PhaseFunction::GroupFactor first = FactorOf(*loop, loop->first),
                                   second = FactorOf(*loop, loop->second);
  index_.Bind(thread_x_, lane);
  index_.Bind(thread_y_, warp);
  values = function_->BeginProducts(loop->first->dtype, loop->columns, first, second, values);
  for (size_t e = 0; e < values.size() && status_.ok(); ++e)
    Store(sums, places[e], {values[e], ir::DType::kF32, 1});
}

llvm::Value* FunctionEmitter::Number(const ir::Expr& expr) {
  return MaterialiseScalar(index_.Decompose(expr));
}

// Boxes beside each other where a row of the tile is longer than the map's.
void FunctionEmitter::EmitBox(const ir::StmtNode& node) {
  const ir::BoxCopy box = ir::BoxOf(node);
  if (!function_->has_wgmma()) return Fail("a box of a tensor, which this machine does not copy");
  if (box.map < 0 || static_cast<size_t>(box.map) >= nest_.maps.size())
    return Fail("a box of no map");
  const ir::Descriptor& map = nest_.maps[static_cast<size_t>(box.map)];
  statement_values_.clear();
  llvm::Value* const barrier = PlainPointer(box.barriers, index_.Decompose(box.slot));
  llvm::Value* const row = Number(box.row);
  const int64_t elements = map.box[0] * map.box[1];
  const Affine to = index_.Decompose(box.to);
  const int64_t boxes = TileElements(node.body[0], box.buffer) / elements;
  for (int64_t k = 0; k < boxes; ++k) {
    function_->CopyBox(box.map, PlainPointer(box.buffer, to + Affine(k * elements)), row,
                       Number(box.column + k * map.box[1]), barrier);
  }
  ++StateOf(box.buffer).writes;
}

bool FunctionEmitter::EmitBoxSync(const ir::StmtNode& node) {
  const auto barrier = [&](const ir::Expr& slot) {
    return PlainPointer(node.buffers[0], index_.Decompose(slot));
  };
  if (ir::BegunBarriers(node) > 0) {
    function_->BeginBarriers(barrier(ir::Int(0)), ir::BegunBarriers(node));
  } else if (ir::ExpectedBytes(node) > 0) {
    function_->ExpectBytes(barrier(node.values[0]), ir::ExpectedBytes(node));
  } else if (ir::AwaitedGroups(node) >= 0 && !node.buffers.empty()) {
    function_->AwaitPhase(barrier(node.values[0]), Number(node.values[1]));
    Boundary();
  } else {
    return ir::IsCommit(node) && !node.buffers.empty();
  }
  return true;
}

void FunctionEmitter::AwaitProducts(const ir::StmtNode& node) {
  const int sums = node.buffers[0];
  std::vector<llvm::Value*> values;
  for (int64_t e = 0; e < Of(sums).elements; ++e) values.push_back(Load(sums, Affine(e)).llvm);
  values = function_->AwaitProducts(ir::AwaitedProducts(node), values);
  for (size_t e = 0; e < values.size(); ++e)
    Store(sums, Affine(static_cast<int64_t>(e)), {values[e], ir::DType::kF32, 1});
  Boundary();
}

}  // namespace hone::codegen
